import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

/** ASI03: what one may not see answers exactly as what is not there. ASI09: only those who may are heard. */
let home: Home;
let daemon: RunningDaemon;
const tokens: Record<string, string> = {};
const KEY = "agent:main:test:dm:p";
const NOWHERE = "agent:main:test:dm:nobody";
let runOfMain: string;

interface Answer {
  readonly status: number;
  readonly text: string;
}

beforeAll(async () => {
  home = new Home('owners: [telegram:7]\nagents:\n  main: {default: true}\n  coder: {}\n  auditor: {sees: [main]}\n  chief: {sees: "*"}\n');
  daemon = await home.start();
  for (const scope of ["read", "agent:main", "agent:coder", "agent:auditor", "agent:chief", "guest:main-2", "channel:telegram"]) {
    const answer = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
    tokens[scope] = ((await answer.json()) as { token: string }).token;
  }
  runOfMain = (await daemon.send({ id: "1", text: "the canary sings" })).runId;
  await daemon.finished(runOfMain);
}, 60_000);
afterAll(() => home.remove());

async function ask(scope: string, path: string, method = "GET", body: unknown = {}): Promise<Answer> {
  const answer = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${tokens[scope]}` },
    ...(method === "GET" ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
}

const path = (key: string): string => `/api/sessions/${encodeURIComponent(key)}`;

test("another agent's session, run and words answer as what does not exist", async () => {
  const hidden = await ask("agent:coder", path(KEY));
  const missing = await ask("agent:coder", path(NOWHERE));
  expect(hidden.status).toBe(404);
  expect(hidden.text.replace(KEY, "KEY")).toBe(missing.text.replace(NOWHERE, "KEY"));

  const elsewhere = "0".repeat(20);
  for (const [there, nowhere] of [
    [await ask("agent:coder", `/api/runs/${runOfMain}`), await ask("agent:coder", `/api/runs/${elsewhere}`)],
    [await ask("agent:coder", `/api/runs/${runOfMain}/live`), await ask("agent:coder", `/api/runs/${elsewhere}/live`)],
    [await ask("agent:coder", `/api/runs/${runOfMain}/stop`, "POST"), await ask("agent:coder", `/api/runs/${elsewhere}/stop`, "POST")],
  ] as const) {
    expect(there.status).toBeGreaterThanOrEqual(400);
    expect(there.status).toBe(nowhere.status);
    expect(there.text.replace(runOfMain, "RUN")).toBe(nowhere.text.replace(elsewhere, "RUN"));
  }
  for (const query of [
    "q=canary",
    "q=canary&agent=main",
    "q=canary&syntax=operators",
    'q="canary" OR x&syntax=operators',
    "q=canary&limit=200",
  ]) {
    const found = await ask("agent:coder", `/api/sessions/search?${query}`);
    expect(found).toEqual({ status: 200, text: '{"hits":[]}' });
  }
  expect(await ask("agent:coder", "/api/sessions?agent=main")).toEqual({ status: 200, text: '{"sessions":[],"next":null}' });
});

test.each([
  ["agent:main", 200, true],
  ["agent:auditor", 200, true],
  ["agent:chief", 200, true],
  ["read", 200, true],
  ["agent:coder", 404, false],
])("%s sees what it may: %i", async (scope, status, finds) => {
  expect((await ask(scope, path(KEY))).status).toBe(status);
  expect((await ask(scope, "/api/sessions")).text.includes(KEY)).toBe(finds);
  expect((await ask(scope, "/api/sessions/search?q=canary")).text.includes(KEY)).toBe(finds);
});

test.each(["guest:main-2", "channel:telegram"])("%s sees no conversation, whatever it asks for", async (scope) => {
  for (const where of ["/api/sessions", "/api/sessions/search?q=canary", path(KEY), path(NOWHERE), "/api/approvals"])
    expect([where, (await ask(scope, where)).status]).toEqual([where, 403]);
});

test("nobody but the operator stops a run or answers an approval over HTTP", async () => {
  for (const scope of Object.keys(tokens)) {
    expect((await ask(scope, `/api/runs/${runOfMain}/stop`, "POST")).status).toBe(403);
    expect((await ask(scope, "/api/approvals/x", "POST", { verdict: "approve" })).status).toBe(403);
  }
});

test("a channel cannot make itself an owner: who speaks is what its token may post", async () => {
  const post = (message: object) =>
    ask("channel:telegram", "/api/messages", "POST", { platform: "telegram", chat: "1", chat_type: "group", ...message });
  const foreign = await post({ id: "1", platform: "terminal", peer: "root", text: "/agent coder" });
  expect(foreign.status).toBe(403);
  const named = await post({ id: "2", peer: "7", agent: "coder", text: "/status" });
  expect(named.status).toBe(403);
  const stranger = JSON.parse((await post({ id: "3", peer: "9", text: "/agent coder" })).text) as { runId: string };
  expect(await daemon.run(stranger.runId)).toMatchObject({ agent: "main", error: { code: "request.forbidden" } });
  const owner = JSON.parse((await post({ id: "4", peer: "7", text: "/agent coder" })).text) as { runId: string };
  expect(await daemon.run(owner.runId)).toMatchObject({ agent: "coder", error: null });
});

test("session keys that look like paths or patterns find nothing", async () => {
  for (const key of [
    "..",
    "../../etc/passwd",
    "agent:main:%",
    "agent:main:test:dm:p' or 1=1 --",
    "*",
    "agent:main:test:dm",
    "x".repeat(3_000),
  ])
    expect((await ask("agent:main", path(key))).status).not.toBe(200);
});
