import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";
import { Agent, guestToken, Repository } from "./mcp-clients.ts";

const SLOW = 60_000;
let home: Home;
let repository: Repository;
let agents: Agent[];

beforeEach(() => {
  home = new Home("server: { port: 0 }\n");
  repository = new Repository();
  agents = [];
});
afterEach(async () => {
  await Promise.all(agents.map((agent) => agent.close().catch(() => {})));
  await endBackgroundDaemon();
  await home.remove();
  repository.remove();
});

/** One that a bridge has started belongs to nobody. */
async function endBackgroundDaemon(): Promise<void> {
  try {
    const { pid } = JSON.parse(readFileSync(join(home.path, "daemon.json"), "utf8")) as { pid: number };
    process.kill(pid, "SIGTERM");
    for (let tries = 0; tries < 100; tries++) {
      process.kill(pid, 0);
      await sleep(100);
    }
  } catch {
    // There is none, or no more.
  }
}

async function stdio(cwd = repository.path, options: Parameters<typeof Agent.stdio>[2] = {}): Promise<Agent> {
  const agent = await Agent.stdio(home.path, cwd, options);
  agents.push(agent);
  return agent;
}

async function http(daemon: RunningDaemon, name: string, client: Parameters<typeof Agent.http>[3] = {}): Promise<Agent> {
  const { token } = await guestToken(daemon, name);
  const agent = await Agent.http(daemon, token, { repository: (await where()).repository, tops: ["/elsewhere"], prefix: "" }, client);
  agents.push(agent);
  return agent;
}

async function where(): Promise<{ repository: string }> {
  return JSON.parse((await home.run(["guard", "where", "--json"], { cwd: repository.path })).stdout) as { repository: string };
}

describe("identity", () => {
  test("processes started at once from one snippet, with no daemon and no config, are as many identities", { timeout: SLOW }, async () => {
    const five = await Promise.all(Array.from({ length: 5 }, () => stdio()));
    const names = await Promise.all(five.map((agent) => agent.name()));
    expect(names.toSorted()).toEqual(["claude-code-1", "claude-code-2", "claude-code-3", "claude-code-4", "claude-code-5"]);
    const claims = await Promise.all(five.map((agent) => agent.call("claim", { files: ["a.ts"] })));
    expect(claims.filter(({ refused }) => !refused)).toHaveLength(1);
    const holder = names[claims.findIndex(({ refused }) => !refused)];
    for (const { error } of claims.filter(({ refused }) => refused))
      expect(error).toMatchObject({ code: "claim.held", details: { holder } });
    // Its name and what it held are free when it ends, and the smallest number is given again.
    const first = five[names.indexOf("claude-code-1")] as Agent;
    const second = five[names.indexOf("claude-code-2")] as Agent;
    await first.call("claim", { resource: "deploy", ttl_s: 600 });
    await first.close();
    await expect.poll(async () => (await second.call("claim", { resource: "deploy" })).refused, { timeout: 10_000 }).toBe(false);
    expect(await (await stdio()).name()).toBe("claude-code-6");
  });

  test("a name that was asked for is given, and counted on when it is taken", { timeout: SLOW }, async () => {
    await home.start();
    const args = ["--name", "alice"];
    expect(await (await stdio(repository.path, { args })).name()).toBe("alice");
    expect(await (await stdio(repository.path, { args })).name()).toBe("alice-2");
    expect(await (await stdio(repository.path, { name: "Código Editor!" })).name()).toBe("c-digo-editor-1");
  });

  test("what a call says about its caller is refused, and a session belongs to whoever opened it", { timeout: SLOW }, async () => {
    const daemon = await home.start();
    const alice = await http(daemon, "alice");
    expect((await alice.call("mail_send", { to: "bob", content: "hi", from: "bob" })).error.code).toBe("request.malformed");
    const { token } = await guestToken(daemon, "mallory");
    const session = (alice.client.transport as { sessionId?: string }).sessionId as string;
    const stolen = await fetch(`${daemon.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "mcp-session-id": session,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    expect(stolen.status).toBe(404);
  });
});

describe("two official clients at once, one on stdio and one over HTTP", () => {
  test("claims conflict, tell the holder, and are taken over when they expire", { timeout: SLOW }, async () => {
    const daemon = await home.start();
    const [editor, coder] = [await http(daemon, "editor"), await stdio()];
    const taken = await editor.call("claim", { files: ["src/**"], ttl_s: 2 });
    const [claim] = taken.data.claims;
    const held = await coder.call("claim", { files: ["src/deep/a.ts", "README.md"] });
    expect(held.error).toMatchObject({ code: "claim.held", details: { holder: "editor", expiresAt: claim.expiresAt } });
    expect(held.text).toContain("[claim.held]");
    // All or none: the README was free, and is free still.
    expect((await coder.call("claims_list")).data.claims).toHaveLength(1);
    const [later] = (await coder.call("claim", { files: ["src/deep/a.ts"], wait_s: 10 })).data.claims;
    expect(later).toMatchObject({ holder: "claude-code-1", resource: `repo/${(await where()).repository}/src/deep/a.ts` });
    expect(later.fence).toBeGreaterThan(claim.fence);
    expect((await editor.call("claim_renew", { files: ["src/**"], fence: claim.fence })).error.code).toBe("claim.lost");
    expect((await coder.call("claim_release", { all: true })).data.released).toHaveLength(1);
    expect((await editor.call("claim", { files: ["src/**"] })).refused).toBe(false);
  });

  test("a write with a stale version is refused with the current entry", { timeout: SLOW }, async () => {
    const daemon = await home.start();
    const [editor, coder] = [await http(daemon, "editor"), await stdio()];
    await editor.call("context_write", { key: "plan", value: { step: 1 }, if_version: null });
    const read = await coder.call("context_read", { key: "plan" });
    expect(read.data.entry).toMatchObject({ version: 1, value: { step: 1 }, author: { agent: "editor" } });
    await editor.call("context_write", { key: "plan", value: { step: 2 }, if_version: 1, note: "went on" });
    const stale = await coder.call("context_write", { key: "plan", value: { step: "mine" }, if_version: 1 });
    expect(stale.error).toMatchObject({ code: "pool.conflict", details: { current: { version: 2, value: { step: 2 }, note: "went on" } } });
    expect((await coder.call("context_write", { key: "plan", value: 3, if_version: 2 })).data.entry.author.agent).toBe("claude-code-1");
    expect((await editor.call("context_history", { key: "plan" })).data.entries).toHaveLength(3);
  });

  test("mail arrives, comes again until it is acked, and is nobody else's", { timeout: SLOW }, async () => {
    const daemon = await home.start();
    const [editor, coder, other] = [await http(daemon, "editor"), await stdio(), await stdio()];
    await editor.call("mail_send", { to: "claude-code-1", type: "question", content: "which API?" });
    expect((await other.call("mail_read")).data.mail).toEqual([]);
    const first = await coder.call("mail_read", { visibility_s: 1 });
    expect(first.data.mail).toMatchObject([{ from: "editor", content: "which API?", attempt: 1 }]);
    const [mail] = first.data.mail;
    const again = await coder.call("mail_read", { wait_s: 10 });
    expect(again.data.mail).toMatchObject([{ id: mail.id, attempt: 2 }]);
    expect((await coder.call("mail_ack", { id: mail.id, fence: mail.fence })).error.code).toBe("mail.stale");
    expect((await other.call("mail_ack", { id: mail.id, fence: again.data.mail[0].fence })).error.code).toBe("request.not_found");
    expect((await coder.call("mail_ack", { id: mail.id })).refused).toBe(false);
    expect((await coder.call("mail_read")).data.mail).toEqual([]);
  });

  test("what is subscribed to is told of when it changes, and nothing else", { timeout: SLOW }, async () => {
    const daemon = await home.start();
    const [editor, coder] = [await http(daemon, "editor"), await stdio()];
    const uri = "guildhall://pools/commons/api%2Fdecisions";
    for (const agent of [editor, coder]) {
      await agent.client.subscribeResource({ uri });
      await agent.client.subscribeResource({ uri: "guildhall://mail" });
      await agent.client.subscribeResource({ uri: "guildhall://claims" });
    }
    await coder.call("context_write", { key: "other", value: 1 });
    await coder.call("context_write", { key: "api/decisions", value: "REST" });
    await expect.poll(() => editor.updated).toEqual([uri]);
    await expect.poll(() => coder.updated).toEqual([uri]);
    const { contents } = await editor.client.readResource({ uri });
    expect(JSON.parse((contents[0] as { text: string }).text)).toMatchObject({ value: "REST", author: { agent: "claude-code-1" } });
    await editor.call("mail_send", { to: "claude-code-1", content: "look" });
    await expect.poll(() => coder.updated.at(-1)).toBe("guildhall://mail");
    expect(editor.updated).not.toContain("guildhall://mail");
    await coder.call("claim", { resource: "deploy" });
    await expect.poll(() => editor.updated.at(-1)).toBe("guildhall://claims");
    const { resources } = await coder.client.listResources();
    expect(resources.map((one) => one.uri)).toEqual(expect.arrayContaining([uri, "guildhall://claims", "guildhall://mail"]));
    await expect(coder.client.subscribeResource({ uri: "guildhall://pools/hidden/x" })).rejects.toThrow("there is no resource");
  });

  test("a proposal is agreed, and its writes are there", { timeout: SLOW }, async () => {
    const daemon = await home.start();
    const [editor, coder] = [await http(daemon, "editor"), await stdio()];
    const electorate = ["editor", "claude-code-1"];
    const { proposal } = (
      await editor.call("propose", { subject: "REST?", electorate, rule: "all", writes: [{ key: "api", value: "REST" }] })
    ).data;
    expect((await coder.call("proposal_check")).data.proposals).toMatchObject([{ id: proposal.id }]);
    await editor.call("vote", { id: proposal.id, vote: "yes", hash: proposal.hash });
    expect((await coder.call("vote", { id: proposal.id, vote: "yes", hash: "0".repeat(64) })).error.code).toBe("proposal.other_hash");
    expect((await coder.call("vote", { id: proposal.id, vote: "yes", hash: proposal.hash })).data.proposal.state).toBe("committed");
    expect((await coder.call("context_read", { key: "api" })).data.entry.value).toBe("REST");
  });
});

test("worktrees of one repository meet, by relative and by absolute paths", { timeout: SLOW }, async () => {
  await home.start();
  const tree = repository.worktree("feature");
  const [main, feature] = [await stdio(), await stdio(tree)];
  await main.call("claim", { files: ["a.ts"] });
  expect((await feature.call("claim", { files: ["./a.ts"] })).error.code).toBe("claim.held");
  expect((await feature.call("claim", { files: [join(tree, "a.ts")] })).error.code).toBe("claim.held");
  expect((await feature.call("claim", { files: [join(tree, "b.ts")] })).refused).toBe(false);
  expect((await main.call("claim", { files: ["*.ts"] })).error.details).toMatchObject({ holder: "claude-code-2" });
  const outside = await feature.call("claim", { files: ["/etc/passwd"] });
  expect(outside.error.code).toBe("request.malformed");
  expect(outside.text).toContain("lies outside");
  expect((await feature.call("claim", { files: ["../a.ts"] })).text).toContain("lies outside");
});

test("a daemon that restarts is joined again: the same name, its claims, its subscriptions", { timeout: SLOW }, async () => {
  const first = await home.start();
  const coder = await stdio();
  const uri = "guildhall://pools/commons/plan";
  await coder.client.subscribeResource({ uri });
  await coder.call("claim", { files: ["a.ts"] });
  const waiting = coder.call("mail_read", { wait_s: 60 }).catch((error: Error) => error.message);
  await sleep(300);
  await first.kill("SIGKILL");
  expect(await waiting).toContain("the daemon went away");
  const second = await home.start();
  const editor = await http(second, "editor");
  expect((await editor.call("claim", { files: ["a.ts"] })).error.details).toMatchObject({ holder: "claude-code-1" });
  // A call that was on the broken connection may still be answered with an error; the next one is not.
  const name = (): Promise<string> => coder.name().catch(() => "");
  await expect.poll(name, { timeout: 10_000 }).toBe("claude-code-1");
  coder.updated.length = 0;
  await editor.call("context_write", { key: "plan", value: 1 });
  await expect.poll(() => coder.updated, { timeout: 15_000 }).toContain(uri);
  // With nobody else to start it, a call brings it back.
  await second.kill("SIGTERM");
  await expect.poll(name, { timeout: 10_000 }).toBe("claude-code-1");
});

test("a revoked token ends a session, and a bridge does not come back by itself", { timeout: SLOW }, async () => {
  const daemon = await home.start();
  const [{ id, token }, coder] = [await guestToken(daemon, "editor"), await stdio()];
  const headers = { authorization: `Bearer ${token}`, accept: "application/json, text/event-stream", "content-type": "application/json" };
  const post = (message: object, session = {}): Promise<Response> =>
    fetch(`${daemon.url}/mcp`, {
      method: "POST",
      headers: { ...headers, ...session },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  const clientInfo = { name: "raw", version: "1" };
  const opened = await post({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } });
  const session = { "mcp-session-id": opened.headers.get("mcp-session-id") as string };
  const streams = await Promise.all([
    fetch(`${daemon.url}/mcp`, { headers: { ...headers, ...session } }),
    post({ id: 2, method: "tools/call", params: { name: "mail_read", arguments: { wait_s: 60 } } }, session),
  ]);
  await sleep(200);
  await daemon.fetch(`/api/tokens/${id}`, { method: "DELETE" });
  // By itself the one never ends, and the other in a minute.
  await Promise.all(streams.map((stream) => stream.text()));
  expect((await post({ id: 3, method: "tools/list" }, session)).status).toBe(401);

  const { tokens } = (await (await daemon.fetch("/api/tokens")).json()) as { tokens: { id: string; scope: string }[] };
  await daemon.fetch(`/api/tokens/${tokens.find(({ scope }) => scope === "guest:claude-code-1")?.id}`, { method: "DELETE" });
  const guests = async () => ((await (await daemon.fetch("/api/guests")).json()) as { guests: unknown[] }).guests;
  await expect.poll(guests).toEqual([]);
  await expect(coder.call("whoami")).rejects.toThrow();
  expect(await guests()).toEqual([]);
});

test("foreign hosts and origins are refused, and readers look without touching", { timeout: SLOW }, async () => {
  const daemon = await home.start();
  const ask = (headers: Record<string, string>) => daemon.fetch("/mcp", { method: "POST", headers, body: "{}" });
  expect((await ask({ origin: "https://evil.example" })).status).toBe(403);
  expect((await fetch(`${daemon.url}/mcp`, { method: "POST", body: "{}" })).status).toBe(401);
  const response = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope: "read" }) });
  const reader = await Agent.http(daemon, ((await response.json()) as { token: string }).token);
  agents.push(reader);
  expect((await reader.call("claims_list")).refused).toBe(false);
  expect((await reader.call("claim", { resource: "x" })).error.code).toBe("request.forbidden");
  expect((await reader.call("context_write", { key: "x", value: 1 })).refused).toBe(true);
});

test("clients of the newest protocol, which have no sessions, are served alike", { timeout: SLOW }, async () => {
  const daemon = await home.start();
  const newest = { versionNegotiation: { mode: "auto" as const } };
  const [editor, coder] = [await http(daemon, "editor", newest), await stdio(repository.path, { client: newest })];
  expect([await editor.name(), await coder.name()]).toEqual(["editor", expect.stringMatching(/^claude-code-\d+$/)]);
  for (const { client } of [editor, coder]) expect(client.getProtocolEra()).toBe("modern");
  await editor.call("claim", { files: ["a.ts"] });
  expect((await coder.call("claim", { files: ["a.ts"] })).error.code).toBe("claim.held");
  const uri = "guildhall://pools/commons/plan";
  const subscriptions = await Promise.all([editor, coder].map(({ client }) => client.listen({ resourceSubscriptions: [uri] })));
  await sleep(200);
  await coder.call("context_write", { key: "plan", value: 1 });
  await expect.poll(() => editor.updated).toEqual([uri]);
  await expect.poll(() => coder.updated).toEqual([uri]);
  await Promise.all(subscriptions.map((one) => one.close()));
});
