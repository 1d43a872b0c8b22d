import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

interface Operation {
  readonly security: readonly unknown[];
  readonly requestBody?: {
    readonly content: { readonly "application/json": { readonly schema: { readonly additionalProperties?: unknown } } };
  };
}

let home: Home;
let daemon: RunningDaemon;
let operations: { readonly method: string; readonly path: string; readonly operation: Operation }[];
const tokens: Record<string, string> = {};

beforeAll(async () => {
  home = new Home("agents:\n  main: {}\n  coder: {roles: [engineer]}\n");
  daemon = await home.start();
  for (const scope of ["read", "agent:main", "agent:coder", "guest:visitor", "channel:test"]) {
    const answer = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
    tokens[scope] = ((await answer.json()) as { token: string }).token;
  }
  const { paths } = (await (await daemon.fetch("/api/openapi.json")).json()) as { paths: Record<string, Record<string, Operation>> };
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replace(/\{\w+\}/g, "x"),
      operation,
    })),
  );
});
afterAll(() => home.remove());

async function ask(method: string, path: string, token: string | null, body: unknown = {}): Promise<number> {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const stop = new AbortController();
  const sent = method === "GET" || method === "DELETE" ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`${daemon.url}${path}`, { method, headers, signal: stop.signal, ...sent });
  stop.abort();
  return answer.status;
}

test("every route that asks for a token gives nothing without one", async () => {
  expect(operations.length).toBeGreaterThan(5);
  for (const { method, path, operation } of operations) {
    if (operation.security.length === 0) {
      expect([
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/.well-known/agent-card.json",
        "/a2a/x/.well-known/agent-card.json",
        "/hooks/x",
        "/hooks/x/x",
      ]).toContain(path);
      continue;
    }
    for (const token of [null, "x", `gh_${"A".repeat(43)}`])
      expect([method, path, await ask(method, path, token)]).toEqual([method, path, 401]);
  }
  expect(await ask("GET", "/api/there-is-no-such-thing", null)).toBe(401);
});

test("a read token changes nothing, on any route", async () => {
  const changing = operations.filter(({ method, path }) => method !== "GET" && path.startsWith("/api/"));
  expect(changing.length).toBeGreaterThan(2);
  for (const { method, path } of changing)
    expect([method, path, await ask(method, path, tokens.read as string)]).toEqual([method, path, 403]);
});

test("tokens are the operator's business alone", async () => {
  for (const [scope, token] of Object.entries(tokens)) {
    for (const [method, path] of [
      ["GET", "/api/tokens"],
      ["POST", "/api/tokens"],
      ["DELETE", "/api/tokens/x"],
    ] as const)
      expect([scope, await ask(method, path, token, { scope: "operator" })]).toEqual([scope, 403]);
  }
});

test("nobody but operators and readers follows the whole ledger", async () => {
  const statuses = await Promise.all(Object.entries(tokens).map(async ([scope, token]) => [scope, await ask("GET", "/api/events", token)]));
  expect(Object.fromEntries(statuses)).toEqual({
    read: 200,
    "agent:main": 403,
    "agent:coder": 403,
    "guest:visitor": 403,
    "channel:test": 403,
  });
});

test("no body says who its sender is: every body is closed, and a declared identity is refused", async () => {
  for (const { method, path, operation } of operations) {
    const schema = operation.requestBody?.content["application/json"].schema;
    if (!schema) continue;
    expect([method, path, schema.additionalProperties]).toEqual([method, path, false]);
    for (const field of ["from", "author", "holder", "caller", "identity", "voter", "proposer"]) {
      const status = await ask(method, path, daemon.token, { [field]: "coder" });
      expect([method, path, field, status]).toEqual([method, path, field, 422]);
    }
  }
});

test("headers do not change who calls", async () => {
  const { runId } = await daemon.send({ id: "of main", agent: "main" });
  for (const header of ["x-guildhall-agent", "x-agent", "x-forwarded-user", "x-original-authorization", "cookie"]) {
    const answer = await fetch(`${daemon.url}/api/runs/${runId}`, {
      headers: { authorization: `Bearer ${tokens["agent:coder"]}`, [header]: daemon.token },
    });
    expect([header, answer.status]).toEqual([header, 404]);
  }
  expect(await ask("GET", `/api/events?token=${daemon.token}&access_token=${daemon.token}`, null)).toBe(401);
});
