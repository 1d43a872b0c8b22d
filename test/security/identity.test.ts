import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

type Who = "alice" | "bob" | "mallory";
interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a route answers
  readonly body: any;
}

let home: Home;
let daemon: RunningDaemon;
const tokens = {} as Record<Who, string>;

beforeAll(async () => {
  home = new Home("agents:\n  main: {}\n  alice: {}\n  bob: {}\n");
  daemon = await home.start();
  for (const [who, scope] of [
    ["alice", "agent:alice"],
    ["bob", "agent:bob"],
    ["mallory", "guest:mallory"],
  ] as const) {
    const made = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
    tokens[who] = ((await made.json()) as { token: string }).token;
  }
});
afterAll(() => home.remove());

async function as(who: Who, method: string, path: string, body?: unknown): Promise<Answer> {
  const headers = { authorization: `Bearer ${tokens[who]}` };
  const answer = await fetch(`${daemon.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: answer.status, body: await answer.json() };
}

/** Everything a stranger can tell from the answer, apart from the name he asked for himself. */
const told = ({ status, body }: Answer, name: string): unknown => [status, JSON.stringify(body).replaceAll(name, "…")];

test("nobody renews or releases another's claim, even knowing its fence", async () => {
  const { status, body: claim } = await as("alice", "POST", "/api/claims", { resource: "repo/a.ts", ttl_ms: 60_000 });
  expect([status, claim.holder]).toEqual([201, "alice"]);
  for (const verb of ["renew", "release"])
    expect((await as("mallory", "POST", `/api/claims/${verb}`, { resource: "repo/a.ts", fence: claim.fence })).status).toBe(409);
  expect((await as("mallory", "POST", "/api/claims", { resource: "repo/a.ts", holder: "alice" })).status).toBe(422);
  const held = await as("bob", "POST", "/api/claims", { resource: "repo/a.ts" });
  expect([held.status, held.body.error.details.holder]).toEqual([409, "alice"]);
});

test("mail carries its sender's own name, and is neither read nor acked by others", async () => {
  expect((await as("mallory", "POST", "/api/mail", { to: "bob", type: "t", content: 1, from: "alice" })).status).toBe(422);
  const sent = await as("mallory", "POST", "/api/mail", { to: "bob", type: "t", content: { from: "alice" } });
  expect(sent.status).toBe(201);
  const { id } = sent.body;
  expect((await as("alice", "POST", "/api/mail/receive", { max: 10 })).body.mail).toEqual([]);
  const [received] = (await as("bob", "POST", "/api/mail/receive", { max: 10 })).body.mail;
  expect([received.id, received.from]).toEqual([id, "mallory"]);

  const none = "0".repeat(id.length);
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["POST", "/ack", { fence: received.fence }],
    ["POST", "/nack", { fence: received.fence }],
  ] as const) {
    const [others, nothing] = [
      await as("alice", method, `/api/mail/${id}${path}`, body),
      await as("alice", method, `/api/mail/${none}${path}`, body),
    ];
    expect([others.status, told(others, id)]).toEqual([404, told(nothing, none)]);
  }
  expect((await as("bob", "POST", `/api/mail/${id}/ack`, { fence: received.fence })).status).toBe(200);
});

test("nobody votes for another, and a proposal one is no part of is as if there were none", async () => {
  const opened = await as("alice", "POST", "/api/proposals", {
    subject: "ship it",
    electorate: ["alice", "bob"],
    rule: "all",
    deadline_ms: 60_000,
  });
  expect(opened.status).toBe(201);
  const { id, hash } = opened.body;
  expect((await as("mallory", "POST", `/api/proposals/${id}/votes`, { vote: "yes", hash, voter: "bob" })).status).toBe(422);
  const none = "0".repeat(id.length);
  const [others, nothing] = [await as("mallory", "GET", `/api/proposals/${id}`), await as("mallory", "GET", `/api/proposals/${none}`)];
  expect([others.status, told(others, id)]).toEqual([404, told(nothing, none)]);
  await as("mallory", "POST", `/api/proposals/${id}/votes`, { vote: "yes", hash });
  expect((await as("alice", "GET", `/api/proposals/${id}`)).body).toMatchObject({ state: "open", votes: [] });
});

test("a pool one may not read does not exist for one, and neither do its entries", async () => {
  const made = await daemon.fetch("/api/pools", {
    method: "POST",
    body: JSON.stringify({ name: "private", readers: ["bob"], writers: ["alice"] }),
  });
  expect(made.status).toBe(201);
  const key = (pool: string, rest = ""): string => `/api/pools/${pool}/entries/plan${rest}`;
  const put = await as("alice", "PUT", key("private"), { value: "canary-7731" });
  expect([put.status, put.body.author.agent]).toEqual([201, "alice"]);
  expect((await as("alice", "PUT", key("private"), { value: 1, author: "bob" })).status).toBe(422);
  expect((await as("bob", "GET", key("private"))).body.value).toBe("canary-7731");
  expect((await as("bob", "PUT", key("private"), { value: "mine now" })).status).toBe(403);

  for (const [method, rest, body] of [
    ["GET", "", undefined],
    ["GET", "/history", undefined],
    ["GET", "/readers", undefined],
    ["GET", "/blame", undefined],
    ["PUT", "", { value: 1 }],
    ["DELETE", "", undefined],
  ] as const) {
    const [others, nothing] = [
      await as("mallory", method, key("private", rest), body),
      await as("mallory", method, key("nowhere", rest), body),
    ];
    expect([method, rest, others.status, told(others, "private")]).toEqual([method, rest, 404, told(nothing, "nowhere")]);
    expect(JSON.stringify(others)).not.toContain("canary");
  }
  expect(JSON.stringify(await as("mallory", "GET", "/api/pools"))).not.toContain("private");
});

test("an idempotency key shows nobody another's answer", async () => {
  const body = { to: "bob", type: "t", content: "same" };
  const send = async (who: Who): Promise<string> => {
    const headers = { authorization: `Bearer ${tokens[who]}`, "idempotency-key": "shared" };
    const answer = await fetch(`${daemon.url}/api/mail`, { method: "POST", headers, body: JSON.stringify(body) });
    return ((await answer.json()) as { id: string }).id;
  };
  const [first, again, other] = [await send("alice"), await send("alice"), await send("mallory")];
  expect(again).toBe(first);
  expect(other).not.toBe(first);
});
