import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { noCrashPoints } from "../kernel/crash-points.ts";
import { Failure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import { Redaction } from "../kernel/redact.ts";
import { ConfigRevisions } from "../records/agents/config-revisions.ts";
import { AgentRegistry } from "../records/agents/registry.ts";
import { Pools } from "../records/pools/pools.ts";
import { loadSettings, type Settings } from "../settings/load-settings.ts";
import { openStore, type Store } from "../store/store.ts";
import { Reload, type ReloadParts } from "./reload.ts";
import { storeRevision } from "./store-revision.ts";

let home: string;
let store: Store;
let logged: string[];
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "guildhall-reload-"));
  store = await openStore(`sqlite:${join(home, "state.db")}`);
  logged = [];
});
afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

const note = (level: string) => (message: string) => void logged.push(`${level}: ${message}`);
const log: Log = { info: note("info"), warn: note("warn"), error: note("error") };
const settingsOf = (text: string): Settings => loadSettings({ home }, {}, { text });

/** Looks at these texts, one after the other; the last one stays. */
async function reloading(first: string, ...texts: readonly string[]) {
  const left = [...texts];
  const parts: ReloadParts = {
    store,
    revisions: new ConfigRevisions(store),
    pools: new Pools(store),
    node: "n1",
    name: "n",
    log,
    redaction: new Redaction(),
    reached: noCrashPoints,
    configFile: join(home, "guildhall.yaml"),
    load: async () => settingsOf((left.length > 1 ? left.shift() : left[0]) as string),
    read: async (text) => settingsOf(text),
    looks: () => left[0] as string,
  };
  const begun = settingsOf(first);
  const agents = new AgentRegistry(await storeRevision(parts, begun, []));
  const reload = new Reload(parts, agents, { hash: begun.configHash }, async () => {});
  await reload.changed();
  return { agents, reload, states: async () => (await parts.revisions.list(10)).map(({ state }) => state).toReversed() };
}

const ids = (agents: AgentRegistry): string[] => agents.list().map(({ id }) => id);

test("half of a text is not reported, and the whole is applied", async () => {
  const { agents, states } = await reloading("agents: { main: {} }\n", "agents: { main: {}, co", "agents: { main: {}, coder: {} }\n");
  expect(ids(agents)).toEqual(["main", "coder"]);
  expect(await states()).toEqual(["applied", "applied"]);
  expect(logged).toEqual(["info: the config was applied"]);
});

test("a file that is empty for a moment takes nobody away", async () => {
  const { agents, states } = await reloading("agents: { main: {}, coder: {} }\n", "", "agents: { main: {}, coder: {}, ops: {} }\n");
  expect(ids(agents)).toEqual(["main", "coder", "ops"]);
  expect(await states()).toEqual(["applied", "applied"]);
});

test.for(["", "\n\n"])("a file that is gone or empty (%j) takes nobody away, however long it stays so", async (text) => {
  const { agents, reload, states } = await reloading("tools: { deny: [terminal] }\nagents: { main: {}, coder: {} }\n", text);
  await expect(reload.now()).rejects.toMatchObject({ code: "config.invalid", message: "the config file is gone or empty" });
  expect(ids(agents)).toEqual(["main", "coder"]);
  expect(await states()).toEqual(["applied", "rejected"]);
});

test("a daemon that began without a file may find one, and an empty one too", async () => {
  const { agents } = await reloading("", "\n", "agents: { main: {}, coder: {} }\n");
  expect(agents.current.number).toBe(2);
});

test("an agent that is broken for a moment is not taken out; one that stays broken is", async () => {
  const whole = "agents: { main: {}, coder: {}, ops: {} }\n";
  const { agents, states } = await reloading("agents: { main: {}, coder: {} }\n", "agents: { main: {}, coder: { mo: } }\n", whole);
  expect(agents.list().map(({ state }) => state)).toEqual(["active", "active", "active"]);
  expect(await states()).toEqual(["applied", "applied"]);
  const { agents: broken } = await reloading(whole, "agents: { main: {}, coder: { mo: }, ops: {} }\n");
  expect(broken.get("coder")?.state).toBe("quarantined");
});

test("a text that stays broken is reported once, and what was before goes on", async () => {
  const { agents, reload, states } = await reloading("agents: { main: {} }\n", "agents: {");
  await reload.changed();
  expect(ids(agents)).toEqual(["main"]);
  expect(agents.current.number).toBe(1);
  expect(await states()).toEqual(["applied", "rejected"]);
  expect(logged).toEqual(["error: the config was rejected; the one before goes on"]);
});

test("pools that cannot be reject the whole text, and change nothing", async () => {
  const bad = "agents: { main: {}, coder: {} }\npools: { house: { keys: { a: { schema: { $ref: '#/nowhere' } } } } }\n";
  const { agents, states } = await reloading("agents: { main: {} }\n", bad);
  expect(ids(agents)).toEqual(["main"]);
  expect(await states()).toEqual(["applied", "rejected"]);
  const [rejected] = await new ConfigRevisions(store).list(1);
  expect(rejected?.problems[0]).toMatchObject({ path: "pools.house", line: 2, column: 17 });
  expect(await store.read.all`select name from pools where name = 'house'`).toEqual([]);
});

test("what the store could not take is tried again, and told once", async () => {
  const { reload, agents } = await reloading(
    "agents: { main: {} }\n",
    "agents: { main: {}, coder: {} }\n",
    "agents: { main: {}, ops: {} }\n",
  );
  expect(ids(agents)).toEqual(["main", "coder"]);
  const broken = store.transact;
  store.transact = () => Promise.reject(new Failure("store.unavailable", "gone"));
  expect(await reload.changed()).toBe(false);
  expect(await reload.changed()).toBe(false);
  store.transact = broken;
  expect(await reload.changed()).toBe(true);
  expect(ids(agents)).toEqual(["main", "ops"]);
  expect(logged.filter((line) => line.startsWith("error"))).toEqual(["error: the config cannot be applied yet; the one before goes on"]);
});

test("words and order alone are a new text, and change nobody", async () => {
  const { agents, states } = await reloading("agents: { main: {} }\n", "# hello\nagents: { main: {} }\n");
  expect(agents.current.number).toBe(2);
  expect(await states()).toEqual(["applied", "applied"]);
});
