import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Channel, ChannelTrouble } from "../../src/kernel/channel.ts";
import { createGuildhall, type Guildhall, GuildhallClient } from "../../src/library/index.ts";
import { PlainPlatform } from "../plain-channel.ts";
import { Home } from "./guildhall.ts";

const SOON = { timeout: 10_000, interval: 20 };
const CONFIG = `
owners: [plain:7]
server: { port: 0 }
channels:
  plain: { allow: [7], accounts: { work: {} } }
  shut: {}
`;

/** A platform that does not accept us, and takes nothing. */
const shut = {
  platform: "shut",
  open: async (): Promise<Channel> => ({
    abilities: { dedupes: false, reacts: false, sendsFiles: false },
    listen: () => Promise.reject(new ChannelTrouble("refused", `the token is \u001b[31mnot valid: ${"x".repeat(100)} take another`)),
    partsOf: (text) => [{ text, plain: text }],
    send: () => Promise.reject(new Error("nobody should send here")),
  }),
};

const platform = new PlainPlatform();
const home = new Home(CONFIG);
let house: Guildhall;
let readOnly: GuildhallClient;

beforeAll(async () => {
  house = await createGuildhall({ home: home.path, channels: [platform.plugin(), shut], log: "error" });
  const created = await fetch(`${house.url}/api/tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${house.token}` },
    body: JSON.stringify({ scope: "read" }),
  });
  readOnly = new GuildhallClient(house.url, ((await created.json()) as { token: string }).token);
});
afterAll(async () => {
  await house?.stop();
  await home.remove();
});

const run = async (...args: string[]): Promise<{ code: number | null; json: Record<string, unknown>; stdout: string; stderr: string }> => {
  const { code, stdout, stderr } = await home.run(args);
  return { code, stdout, stderr, json: args.includes("--json") ? JSON.parse(stdout) : {} };
};

test("every account of the config is shown with its state, in the API, by the commands and by the measurements", async () => {
  const states = async () =>
    (await readOnly.channels.list()).channels.map(({ platform: on, account, state }) => `${on}/${account} ${state}`);
  await expect.poll(states, SOON).toEqual(["plain/work connected", "shut/default refused"]);
  const { channels } = await readOnly.channels.list();
  expect(channels).toMatchObject([
    { name: "plain bot", problem: null, since: expect.any(Number), node: expect.any(String), waiting: 0, oldestMs: null },
    { name: null, problem: expect.stringContaining("not valid") },
  ]);
  const listed = await run("channel", "list");
  expect(listed.stdout).toMatch(/plain\/work +connected .*plain bot/);
  expect(listed.stdout).toMatch(/shut +refused .*the token is \[31mnot valid: x+ take another/);
  expect(listed.stdout).not.toContain("\u001b[31m");
  expect((await run("ps")).stdout).toMatch(/nobody does anything now\n\nchannel +state[\s\S]*shut +refused/);
  expect((await run("ps", "--json")).json).toMatchObject({ runs: [], channels: [{ platform: "plain" }, { platform: "shut" }] });
  const measured = async (): Promise<string> => (await fetch(`${house.url}/metrics`)).text();
  await expect.poll(measured, SOON).toContain('guildhall_channel_up{platform="plain",account="work"} 1');
  const text = await measured();
  expect(text).toContain('guildhall_channel_up{platform="shut",account="default"} 0');
  expect(text).toContain('guildhall_channel_replies_waiting{platform="plain",account="work"} 0');
});

test("who holds a code is listed, let in and removed by commands; only operators may", async () => {
  await platform.say("s1", "let me in", "9");
  await expect.poll(() => platform.sent.length, SOON).toBe(1);
  const code = /[A-Z2-9]{4}-[A-Z2-9]{4}/.exec(platform.sent[0]?.part?.plain ?? "")?.[0] as string;
  const holding = await run("channel", "pairings");
  expect(holding.stdout).toMatch(/plain\/work +9 +pending +1 +has a code, for \d+ min/);
  expect(holding.stdout).not.toContain(code);
  await expect(readOnly.channels.pair(code)).rejects.toMatchObject({ code: "request.forbidden" });
  expect(await run("channel", "pair", "AAAA-AAAA", "--json")).toMatchObject({ code: 1, json: { error: { code: "pairing.unknown" } } });
  expect(await run("channel", "pair", code, "--json")).toMatchObject({ code: 0, json: { platform: "plain", account: "work", peer: "9" } });
  expect((await readOnly.channels.pairings()).pairings).toMatchObject([{ peer: "9", state: "paired", pairedBy: "operator" }]);
  await platform.say("s2", "hello", "9");
  await expect.poll(() => platform.sent.length, SOON).toBe(2);
  await expect(readOnly.channels.unpair({ platform: "plain", account: "work", peer: "9" })).rejects.toMatchObject({
    code: "request.forbidden",
  });
  expect((await run("channel", "unpair", "plain", "9")).code).toBe(1);
  expect(await run("channel", "unpair", "plain/work", "9")).toMatchObject({ code: 0, stdout: "9 is not let in any more on plain/work\n" });
  expect((await run("channel", "unpair", "a/b/c", "9")).code).toBe(2);
  expect((await run("channel", "pairings")).stderr).toContain("nobody was paired");
});

test("an account that leaves the config is not shown any more", async () => {
  writeFileSync(join(home.path, "guildhall.yaml"), CONFIG.replace(/ {2}shut.*\n/, ""));
  await expect.poll(async () => (await readOnly.channels.list()).channels.map(({ platform: on }) => on), SOON).toEqual(["plain"]);
});

test("doctor says of every account what it lacks and how it is doing, with a daemon and without one", async () => {
  const checks = async (): Promise<Record<string, unknown>[]> =>
    ((await run("doctor", "--json")).json.checks as { id: string }[]).filter(({ id }) => id.startsWith("channel."));
  writeFileSync(
    join(home.path, "guildhall.yaml"),
    `${CONFIG}  telegram: {}\n  slack: { accounts: { team: { token: some-token-value } } }\n  telegramm: { token: some-token-value }\n`,
  );
  await expect.poll(async () => (await readOnly.channels.list()).channels[4]?.state, SOON).toBe("refused");
  await expect.poll(async () => (await readOnly.channels.list()).channels[1]?.state, SOON).toBe("refused");
  expect(await checks()).toMatchObject([
    { id: "channel.plain/work", severity: "ok", found: "connected as plain bot" },
    {
      id: "channel.shut",
      severity: "error",
      found: expect.stringContaining("it is refused: the token is"),
      fix: expect.stringContaining("channels.shut"),
    },
    {
      id: "channel.telegram",
      severity: "warning",
      found: "it cannot connect without token",
      fix: expect.stringContaining("channels.telegram"),
    },
    { id: "channel.slack/team", severity: "warning", found: "it cannot connect without app_token or signing_secret" },
    { id: "channel.telegramm", severity: "error", found: 'it is refused: there is no channel for the platform "telegramm"' },
  ]);
  await house.stop();
  const [plain, refused] = await checks();
  expect(plain).toMatchObject({ id: "channel.plain/work", severity: "ok", found: "off: no daemon holds it" });
  expect(refused).toMatchObject({ id: "channel.shut", found: expect.stringContaining("off") });
  const daemon = await home.start();
  const { stdout } = await daemon.kill("SIGTERM");
  expect(JSON.parse(stdout).channels).toEqual([
    { platform: "plain", account: "work" },
    { platform: "shut", account: "default" },
    { platform: "telegram", account: "default" },
    { platform: "slack", account: "team" },
    { platform: "telegramm", account: "default" },
  ]);
});
