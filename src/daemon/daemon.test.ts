import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChannelPlugin } from "../kernel/channel-plugin.ts";
import { accountLease } from "../records/channels/channel-accounts.ts";
import { openStore } from "../store/store.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { findDaemon } from "./find-daemon.ts";
import { lockHome } from "./home-lock.ts";
import { backupHome, restoreHome } from "./local.ts";

let home: string;
const running: Daemon[] = [];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-daemon-"));
});
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.stop();
  rmSync(home, { recursive: true, force: true });
});

async function start(options: Partial<Parameters<typeof startDaemon>[0]> = {}): Promise<Daemon> {
  const daemon = await startDaemon({ home, port: 0, logLevel: "error", ...options });
  running.push(daemon);
  return daemon;
}

const message = { id: "1", platform: "test", chat: "c", peer: "p", chat_type: "dm", text: "hello" };

async function ask(daemon: Daemon, body: object): Promise<string> {
  const headers = { authorization: `Bearer ${daemon.operatorToken}` };
  const sent = await fetch(`${daemon.url}/api/messages`, { method: "POST", body: JSON.stringify(body), headers });
  const { runId } = (await sent.json()) as { runId: string };
  return (await fetch(`${daemon.url}/api/runs/${runId}/live`, { headers })).text();
}

test("a message is answered as it streams, and the daemon leaves no trace but its data", async () => {
  const daemon = await start();
  expect(findDaemon({ home })).toMatchObject({ address: { url: daemon.url, node: daemon.node }, token: daemon.operatorToken });
  const stream = await ask(daemon, message);
  expect(stream).toMatch(/event: done\ndata: .*"status":"completed".*Hello!/);
  // Asked again, the run is over, and the stream says so at once.
  expect(await ask(daemon, message)).toMatch(/^:\n\nevent: done/);
  await daemon.stop();
  expect(findDaemon({ home })).toBeUndefined();
  await expect(fetch(`${daemon.url}/healthz`)).rejects.toThrow();
});

test("whoever asks whether it is ready is told of the end before anybody is refused", async () => {
  const daemon = await start();
  const status = async (path: string, init?: RequestInit): Promise<number> => (await fetch(`${daemon.url}${path}`, init)).status;
  expect(await status("/readyz")).toBe(200);
  const stopped = daemon.stop();
  expect(await status("/readyz")).toBe(503);
  expect(await ask(daemon, message)).toContain('"status":"completed"');
  await stopped;
  await expect(fetch(`${daemon.url}/healthz`)).rejects.toThrow();
});

test("a daemon whose database refuses its last words ends all the same", async () => {
  const daemon = await start();
  const database = new DatabaseSync(join(home, "state.db"));
  database.exec("alter table ledger rename to elsewhere");
  database.close();
  await daemon.stop();
  await expect(fetch(`${daemon.url}/healthz`)).rejects.toThrow();
  lockHome(home).release();
});

test("after an end without order new events get numbers that nobody can have been told of", async () => {
  const inDatabase = <T>(use: (database: DatabaseSync) => T): T => {
    const database = new DatabaseSync(join(home, "state.db"));
    try {
      return use(database);
    } finally {
      database.close();
    }
  };
  const newest = (): number => inDatabase((database) => Number(database.prepare("select max(seq) as seq from ledger").get()?.seq));
  await (await start()).stop();
  inDatabase((database) => database.exec("delete from ledger where type = 'daemon.stopped'"));
  const before = newest();
  await start();
  expect(newest()).toBeGreaterThan(before + 10_000);
});

test("an agent with a model that nobody knows is named at the start, and the others start", async () => {
  writeFileSync(join(home, "guildhall.yaml"), "agents: {main: {}, odd: {model: nobody/knows}}\n");
  const { agents } = await start();
  expect(agents).toEqual([
    { id: "main", model: "offline/demo", scripted: true, problem: null },
    { id: "odd", model: "nobody/knows", scripted: false, problem: expect.stringContaining('no provider "nobody"') },
  ]);
});

/** A platform on which somebody has written; `taken`: who has heard of it. */
function platformWith(taken: string[], sent: string[]): ChannelPlugin {
  return {
    platform: "plain",
    open: async () => ({
      abilities: { dedupes: false, reacts: false, sendsFiles: false },
      listen: async (inbound, signal) => {
        inbound.connected("bot");
        taken.push("listens");
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      },
      partsOf: (text) => [{ text, plain: text }],
      send: async ({ part }) => {
        sent.push(part?.text ?? "");
        return { id: "1" };
      },
    }),
  };
}

test("an account that a killed daemon held is free at the next start", async () => {
  writeFileSync(join(home, "guildhall.yaml"), 'channels: {plain: {allow: ["*"]}}\n');
  const name = accountLease({ platform: "plain", account: "default" });
  const store = await openStore(`sqlite:${join(home, "state.db")}`);
  await store.leases.acquire(name, "dead", 3_600_000);
  await store.close();
  const listening: string[] = [];
  await start({ channels: [platformWith(listening, [])] });
  await expect.poll(() => listening, { timeout: 15_000, interval: 5 }).toEqual(["listens"]);
});

test("a daemon that does not listen leaves what people say to others, and sends what is to be said", async () => {
  writeFileSync(join(home, "guildhall.yaml"), 'channels: {plain: {allow: ["*"]}}\n');
  const [listening, sent]: string[][] = [[], []];
  const daemon = await start({ listens: false, channels: [platformWith(listening as string[], sent as string[])] });
  await ask(daemon, { ...message, platform: "plain" });
  await expect.poll(() => sent, { timeout: 15_000, interval: 5 }).toHaveLength(1);
  await daemon.stop();
  expect(listening).toEqual([]);
  const store = await openStore(`sqlite:${join(home, "state.db")}`);
  const name = accountLease({ platform: "plain", account: "default" });
  expect((await store.leases.acquire(name, "anybody", 1_000)).held).toBe(true);
  expect(await store.read.all`select 1 from channel_accounts`).toEqual([]);
  await store.close();
});

test("a taken port is an error, and what was begun is undone", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  await expect(start({ port })).rejects.toMatchObject({ code: "daemon.port_taken" });
  other.close();
  await start();
});

test("a backup is taken while the daemon runs, and restored into an empty home only", async () => {
  const daemon = await start();
  await ask(daemon, message);
  const file = join(home, "backup.gz");
  expect(await backupHome({ home }, file)).toMatchObject({ file, rows: expect.any(Number) });
  await expect(restoreHome({ home }, file)).rejects.toMatchObject({ code: "daemon.already_running" });
  await daemon.stop();
  await expect(restoreHome({ home }, file)).rejects.toMatchObject({ code: "backup.target_not_empty" });

  const other = join(home, "other");
  await restoreHome({ home: other }, file);
  const restored = await startDaemon({ home: other, port: 0, logLevel: "error" });
  running.push(restored);
  // The message is known there too: it does not run a second time.
  expect(await ask(restored, message)).toMatch(/^:\n\nevent: done/);
});

test("a backup of nothing, or to nowhere, is refused and makes nothing", async () => {
  await expect(backupHome({ home }, join(home, "b.gz"))).rejects.toMatchObject({ code: "store.missing" });
  expect(existsSync(join(home, "state.db"))).toBe(false);
  await (await start()).stop();
  await expect(backupHome({ home }, join(home, "no", "such", "b.gz"))).rejects.toMatchObject({ code: "backup.unwritable" });
});
