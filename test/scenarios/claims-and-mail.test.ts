import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";

let home: Home;
let daemon: RunningDaemon;
let tokens: Readonly<Record<string, string>>;

beforeAll(async () => {
  home = new Home();
  daemon = await home.start();
  const token = async (scope: string): Promise<string> =>
    JSON.parse((await home.run(["token", "create", "--scope", scope, "--json"])).stdout).token;
  tokens = { alice: await token("guest:alice"), bob: await token("guest:bob"), reader: await token("read") };
});
afterAll(() => home.remove());

async function call(who: string, path: string, body?: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) {
  const response = await fetch(`${daemon.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${tokens[who] ?? daemon.token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

/** `guildhall ARGS` as one of the guests. */
const guildhall = (who: string, ...args: string[]) =>
  home.run(args, { env: { ...process.env, GUILDHALL_HOME: "", GUILDHALL_TOKEN: tokens[who] ?? "" } });

test("a claim as others see it: 201, one's own repeat 200, another's 409, after waiting 201", async () => {
  const claim = { resource: "walk/a", ttl_ms: 60_000 };
  const first = await call("alice", "/api/claims", claim);
  expect(first).toMatchObject({ status: 201, body: { resource: "walk/a", holder: "alice", mode: "exclusive" } });
  const again = await call("alice", "/api/claims", claim);
  expect([again.status, again.body.fence]).toEqual([200, first.body.fence]);
  expect(await call("bob", "/api/claims", claim)).toMatchObject({
    status: 409,
    body: { error: { code: "claim.held", retry: "later", details: { holder: "alice", expiresAt: expect.any(Number) } } },
  });
  const waiting = call("bob", "/api/claims", { ...claim, wait_ms: 20_000 });
  while ((await call("reader", "/api/claims?prefix=walk/")).body.claims[0].waiters === 0);
  const { fence } = first.body;
  for (const verb of ["renew", "release"])
    expect(await call("bob", `/api/claims/${verb}`, { resource: "walk/a", fence })).toMatchObject({
      status: 409,
      body: { error: { code: "claim.lost" } },
    });
  expect((await call("alice", "/api/claims/release", { resource: "walk/a", fence })).status).toBe(200);
  const got = await waiting;
  expect([got.status, got.body.holder]).toEqual([201, "bob"]);
  expect(got.body.fence).toBeGreaterThan(fence);
});

test("a client that hangs up leaves the line", async () => {
  const { body } = await call("alice", "/api/claims", { resource: "hang/up", ttl_ms: 60_000 });
  const leaving = new AbortController();
  const waiting = call("bob", "/api/claims", { resource: "hang/up", wait_ms: 60_000 }, {}, leaving.signal);
  const waiters = async (): Promise<number> => (await call("alice", "/api/claims?prefix=hang/")).body.claims[0].waiters;
  while ((await waiters()) === 0);
  leaving.abort();
  await expect(waiting).rejects.toThrow();
  while ((await waiters()) > 0);
  await call("alice", "/api/claims/release", { resource: "hang/up", fence: body.fence });
  expect((await call("alice", "/api/claims?prefix=hang/")).body.claims).toEqual([]);
});

test("claims and receipts survive a kill -9, and whoever waited stands in nobody's way for long", async () => {
  const { body } = await call("alice", "/api/claims", { resource: "kill/9", ttl_ms: 600_000 });
  const sent = await call("alice", "/api/mail", { to: "bob", type: "t", content: 1 });
  const received = await call("bob", "/api/mail/receive", { visibility_ms: 600_000 });
  expect(received.body.mail).toMatchObject([{ id: sent.body.id }]);
  void call("bob", "/api/claims", { resource: "kill/9", wait_ms: 60_000 }).catch(() => {});
  while ((await call("reader", "/api/claims?prefix=kill/")).body.claims[0].waiters === 0);
  await daemon.kill("SIGKILL");
  daemon = await home.start();
  expect((await call("alice", "/api/claims/renew", { resource: "kill/9", fence: body.fence })).status).toBe(200);
  expect(await call("bob", `/api/mail/${sent.body.id}/ack`, { fence: received.body.mail[0].fence })).toMatchObject({
    status: 200,
    body: { state: "acked" },
  });
  await call("alice", "/api/claims/release", { resource: "kill/9", fence: body.fence });
  expect((await call("operator", "/api/claims", { resource: "kill/**", wait_ms: 20_000 })).status).toBe(201);
});

test("the same key takes one claim and sends one mail, whatever is repeated", async () => {
  const key = { "idempotency-key": "once" };
  const mail = { to: "carol", type: "t", content: "once" };
  const [first, second] = [await call("alice", "/api/mail", mail, key), await call("alice", "/api/mail", mail, key)];
  expect([second.status, second.body]).toEqual([201, first.body]);
  expect((await call("alice", "/api/mail?box=sent")).body.mail.filter((sent: { to: string }) => sent.to === "carol")).toHaveLength(1);
  const claim = { resource: "once/a", ttl_ms: 60_000 };
  const answers = [await call("alice", "/api/claims", claim, key), await call("alice", "/api/claims", claim, key)];
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
});

test("another's mail answers as one that does not exist", async () => {
  const { body } = await call("alice", "/api/mail", { to: "alice", type: "t", content: "private" });
  const foreign = await call("bob", `/api/mail/${body.id}`);
  const unknown = await call("bob", `/api/mail/${"0".repeat(20)}`);
  expect([foreign.status, foreign.body]).toEqual([404, unknown.body]);
  const acks = [await call("bob", `/api/mail/${body.id}/ack`, { fence: 1 }), await call("bob", "/api/mail/nothing/ack", { fence: 1 })];
  expect(acks[0]).toEqual(acks[1]);
});

test("who may only look changes nothing, and malformed requests name the field", async () => {
  expect((await call("reader", "/api/claims", { resource: "x" })).status).toBe(403);
  expect((await call("reader", "/api/mail/receive", {})).status).toBe(403);
  for (const [path, body, field] of [
    ["/api/claims", { resource: "**" }, "resource"],
    ["/api/claims", { resource: "x", ttl_ms: 0 }, "ttl_ms"],
    ["/api/mail", { to: "a b", type: "t", content: 1 }, "to"],
    ["/api/mail", { to: "a", type: "t" }, "content"],
    ["/api/mail", { to: "a", type: "t", content: 1, from: "bob" }, "from"],
  ] as const) {
    const answer = await call("alice", path, body);
    expect([answer.status, answer.body.error.message]).toEqual([422, expect.stringContaining(field)]);
  }
  expect((await call("alice", "/api/mail", { to: "a", type: "t", content: "x".repeat(70_000) })).status).toBe(413);
});

test("the command line takes, refuses, lists and releases claims", async () => {
  const taken = await guildhall("alice", "claim", "take", "cli/**", "--ttl", "10m", "--json");
  const { fence } = JSON.parse(taken.stdout);
  expect(taken.code).toBe(0);
  const refused = await guildhall("bob", "claim", "take", "cli/a.ts");
  expect([refused.code, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toMatch(/held by alice through "cli\/\*\*" \[claim\.held\]/);
  expect((await guildhall("bob", "claim", "list", "cli/")).stdout).toMatch(/cli\/\*\* +alice +exclusive/);
  expect((await guildhall("bob", "claim", "release", "cli/**", String(fence))).code).toBe(1);
  expect((await guildhall("alice", "claim", "release", "cli/**", String(fence))).code).toBe(0);
  expect((await guildhall("alice", "claim", "take", "cli/a", "--ttl", "soon")).code).toBe(2);
});

test("the command line sends, reads and acks mail", async () => {
  await guildhall("bob", "mail", "read", "--max", "100", "--ack");
  const sent = await guildhall("alice", "mail", "send", "bob", '{"a":1}', "--data", "--urgent", "--json");
  const { id } = JSON.parse(sent.stdout);
  const read = await guildhall("bob", "mail", "read");
  expect(read.stdout).toContain("alice → bob: note");
  const fence = /fence (\d+)/.exec(read.stdout)?.[1] as string;
  expect((await guildhall("bob", "mail", "ack", id.slice(0, 16), fence)).code).toBe(0);
  expect(JSON.parse((await guildhall("alice", "mail", "show", id, "--json")).stdout)).toMatchObject({ state: "acked", content: { a: 1 } });
  expect((await guildhall("bob", "mail", "ack", id, fence)).stderr).toContain("[mail.stale]");
});
