import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

/** ASI03: what one may not see answers exactly as what is not there. */
let home: Home;
let daemon: RunningDaemon;
const tokens: Record<string, string> = {};
const NOWHERE = "1zzzzzzzzzzzzzzzzzzz";
let ofMain: string;
let ofJane: string;

interface Answer {
  readonly status: number;
  readonly text: string;
}

const OUTSIDERS = ["agent:coder", "guest:joe"];

beforeAll(async () => {
  home = new Home('agents:\n  main: {default: true, guests: [jane]}\n  coder: {}\n  auditor: {sees: [main]}\n  chief: {sees: "*"}\n');
  daemon = await home.start();
  for (const scope of ["read", "agent:main", ...OUTSIDERS, "agent:auditor", "agent:chief", "guest:jane", "channel:telegram"]) {
    const answer = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
    tokens[scope] = ((await answer.json()) as { token: string }).token;
  }
  const opened = async (scope: string): Promise<string> => {
    const answer = await ask(scope, "/api/tasks", "POST", { agent: "main", goal: `the canary sings for ${scope}`, wait_ms: 20_000 });
    expect(answer.status).toBe(200);
    return (JSON.parse(answer.text) as { id: string }).id;
  };
  ofMain = await opened("agent:main");
  ofJane = await opened("guest:jane");
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

test.each(OUTSIDERS)("of others' tasks %s is told what it is told of tasks that are not there", async (scope) => {
  for (const path of ["", "/cancel"]) {
    const method = path === "" ? "GET" : "POST";
    const hidden = await ask(scope, `/api/tasks/${ofMain}${path}`, method);
    const missing = await ask(scope, `/api/tasks/${NOWHERE}${path}`, method);
    expect(hidden.status).toBe(404);
    expect(hidden.text.replaceAll(ofMain, "ID")).toBe(missing.text.replaceAll(NOWHERE, "ID"));
  }
  const below = await ask(scope, `/api/tasks?below=${ofMain}`);
  expect(below.text.replaceAll(ofMain, "ID")).toBe((await ask(scope, `/api/tasks?below=${NOWHERE}`)).text.replaceAll(NOWHERE, "ID"));
  for (const q of ["canary", ofMain, ofMain.slice(0, 8), '"the canary"&match=operators', "can*&match=operators", "canary&agent=main"])
    expect([q, await ask(scope, `/api/tasks/search?q=${q}`)]).toEqual([q, { status: 200, text: '{"hits":[]}' }]);
  for (const query of ["", "?agent=main", "?status=completed", `?before=${NOWHERE}`])
    expect(await ask(scope, `/api/tasks${query}`)).toEqual({ status: 200, text: '{"tasks":[],"next":null}' });
});

test("whoever opened or did it sees it, and whoever may look at them; a guest only its own", async () => {
  const found = async (scope: string): Promise<string[]> => {
    const { text } = await ask(scope, "/api/tasks/search?q=canary");
    return (JSON.parse(text) as { hits: { id: string }[] }).hits.map(({ id }) => id).sort();
  };
  for (const scope of ["agent:main", "agent:auditor", "agent:chief", "read"])
    expect([scope, await found(scope)]).toEqual([scope, [ofMain, ofJane].sort()]);
  expect(await found("guest:jane")).toEqual([ofJane]);
  expect((await ask("channel:telegram", "/api/tasks/search?q=canary")).status).toBe(403);
});

test("whoever may only look ends nothing", async () => {
  for (const scope of ["agent:auditor", "agent:chief"]) {
    const answer = await ask(scope, `/api/tasks/${ofMain}/cancel`, "POST");
    expect([scope, answer.status]).toEqual([scope, 403]);
  }
  expect((await ask("read", `/api/tasks/${ofMain}/cancel`, "POST")).status).toBe(403);
  // Who does it may not take it from whoever asked for it.
  expect((await ask("agent:main", `/api/tasks/${ofJane}/cancel`, "POST")).status).toBe(403);
});
