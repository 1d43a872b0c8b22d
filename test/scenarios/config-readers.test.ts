import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { type ConfigReader, readerOf } from "../../src/contract/config-readers.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { CARRIED, ConfigRecorder, MADE_AGENT } from "../config-recorder.ts";
import { EVERY_KEY } from "../examples/every-key.ts";
import { schemaLeaves } from "../schema-leaves.ts";

/** Read before a config can be watched: where the store is, is a question of the settings themselves. */
const READ_BEFORE = ["store"];
const CHANNEL_NAMES = /^bindings\.(telegram|discord|slack|whatsapp|webhook|web|terminal)$/;

const leaves = schemaLeaves();
const recorder = new ConfigRecorder();
const home = mkdtempSync(join(tmpdir(), "guildhall-readers-"));
let daemon: Daemon;

/** A day in the life of a daemon, as far as anything of the config could show in it. */
beforeAll(async () => {
  mkdirSync(join(home, "docs"));
  writeFileSync(join(home, "guildhall.yaml"), EVERY_KEY);
  daemon = await startDaemon({ home, logLevel: "error", observe: recorder });
  const ask = async (method: string, path: string, body?: unknown, token = daemon.operatorToken): Promise<unknown> => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${daemon.url}${path}`, { method, headers: { authorization: `Bearer ${token}` }, ...sent });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  };
  const said = async (message: Record<string, unknown>): Promise<void> => {
    const whole = { id: crypto.randomUUID(), chat: "c", peer: "7", chat_type: "dm", text: "hello", ...message };
    const { runId } = (await ask("POST", "/api/messages", whole)) as { runId: string | null };
    if (runId !== null && message.platform !== "far")
      await (await fetch(`${daemon.url}/api/runs/${runId}/live`, { headers: { authorization: `Bearer ${daemon.operatorToken}` } })).text();
  };
  const { token } = (await ask("POST", "/api/tokens", { scope: "agent:coder" })) as { token: string };
  for (const platform of ["discord", "telegram", "nowhere", "far"])
    for (const chat_type of ["dm", "group"]) await said({ platform, chat_type });
  await said({ platform: "other", account: "a", guild: "g", topic: "t", chat_type: "group", peer: "p", roles: ["r"] });
  await said({ platform: "telegram", chat_type: "group", text: "/status" });
  for (const text of ["search the web for herons", "fetch http://127.0.0.1:8/"]) await said({ platform: "nowhere", text });
  await ask("GET", "/api/route/explain?platform=telegram&chat=c&chat_type=dm&peer=7");
  await ask("GET", "/api/agents");
  await ask("GET", "/api/agents/coder");
  for (const agent of ["main", "coder", "away", "plain"]) await ask("GET", `/api/agents/${agent}/can?tool=terminal`);
  await ask("GET", "/api/sessions", undefined, token);
  await ask("GET", "/api/sessions/search?q=hello", undefined, token);
  await ask("GET", "/api/tasks/search?q=hello", undefined, token);
  await ask("PUT", "/api/pools/house/entries/facts", { value: { a: 1 } }, token);
  await ask("POST", "/api/mail", { to: "role:engineer", type: "note", content: "x" }, token);
  await ask("POST", "/api/mail/receive", { max: 1, visibility_ms: 1_000 }, token);
  await ask("POST", "/api/mail", { to: "role:engineer", type: "note", content: "x", wake: true }, token);
  await said({ platform: "discord" });
  const guest = (await ask("POST", "/api/tokens", { scope: "guest:jane" })) as { token: string };
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] };
  await fetch(`${daemon.url}/a2a/coder`, {
    method: "POST",
    headers: { authorization: `Bearer ${guest.token}`, "a2a-version": "1.0" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }),
  });
  await said({ platform: "nowhere", text: "ask agent peer:far to count herons" });
  for (const text of ["delegate: count herons", "ask agent main to count herons"]) await said({ platform: "discord", text });
  // Programs: they run, or a person is asked for them; by then it is known how they would run.
  for (const platform of ["discord", "nowhere"]) {
    const program = { id: crypto.randomUUID(), platform, chat: "c", peer: "7", chat_type: "dm", text: "run ls" };
    const { runId } = (await ask("POST", "/api/messages", program)) as { runId: string };
    for (let status = ""; !["completed", "failed", "waiting"].includes(status); await sleep(50))
      ({ status } = (await ask("GET", `/api/runs/${runId}`)) as { status: string });
  }
  // The next day: what ended on the first is looked at in the first round of upkeep, and then once a minute. Whether it was, the tests say.
  await daemon.stop();
  daemon = await startDaemon({ home, logLevel: "error", observe: recorder });
  await vi.waitFor(() => expect(readersOf("retention")).not.toEqual([]), 5_000).catch(() => {});
});

afterAll(async () => {
  await daemon?.stop();
  rmSync(home, { recursive: true, force: true });
});

test("the config of this test uses every key", () => {
  const used = new Set<string>();
  const walk = (value: unknown, path: readonly string[]): void => {
    if (Array.isArray(value)) for (const inner of value) walk(inner, path);
    else if (typeof value === "object" && value !== null) for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key]);
    else used.add(path.join("."));
  };
  walk(parse(EVERY_KEY), []);
  const isUsed = (leaf: string): boolean => [...used].some((key) => matches(leaf, key));
  // Everybody's rules are written in the long form here; the short ones are the agents'.
  expect(leaves.filter((leaf) => !isUsed(leaf) && !["tools", "sandbox"].includes(leaf))).toEqual([]);
});

describe("no dead knobs", () => {
  test.each(leaves.filter((leaf) => !READ_BEFORE.includes(leaf)))("%s is read by whom the table says", (leaf) => {
    expect(readersOf(leaf).sort()).toEqual(lineOf(leaf).readBy.toSorted());
  });
});

function lineOf(leaf: string): ConfigReader {
  return readerOf(leaf.split(".")) as ConfigReader;
}

/** Who reads what is written under this key: in the config, or of the agents into which it was carried. */
function readersOf(leaf: string): string[] {
  const direct = roomsThatRead(asRead(leaf));
  const carried = direct.includes(CARRIED)
    ? roomsThatRead(
        asRead(leaf)
          .replace(/^(agents\.\*\.)?/, `${MADE_AGENT}.`)
          .replace(".subagent.", ".subagents."),
      )
    : [];
  return [...new Set([...direct, ...carried])].filter((room) => room !== CARRIED);
}

function roomsThatRead(key: string): string[] {
  return [...recorder.reads].flatMap(([read, rooms]) => (matches(key, read) ? [...rooms] : []));
}

/** Shorthands come to the same values: under which key those are found. */
function asRead(leaf: string): string {
  if (/^(agents\.\*\.)?tools$/.test(leaf)) return `${leaf}.profile`;
  if (leaf === "agents.*.subagents.agents") return `${leaf}.id`;
  return leaf
    .replace("bindings.match.", "bindings.")
    .replace(CHANNEL_NAMES, "bindings.chat")
    .replace("bindings.team", "bindings.guild")
    .replace("bindings.chat_type", "bindings.chatType");
}

function matches(pattern: string, key: string): boolean {
  const parts = pattern.split(".");
  const keys = key.split(".");
  return parts.length === keys.length && parts.every((part, index) => part === "*" || part === keys[index]);
}
