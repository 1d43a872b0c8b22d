import { statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Home } from "./guildhall.ts";

let home: Home;
beforeEach(() => {
  home = new Home("agents:\n  main: {}\n  coder: {roles: [engineer]}\n");
});
afterEach(() => home.remove());

test("tokens are made, listed and revoked before any daemon has run, and hold when one does", async () => {
  const made = await home.run(["token", "create", "--scope", "agent:coder", "--name", "laptop", "--json"]);
  expect([made.code, made.stderr]).toEqual([0, ""]);
  const { id, token, scope } = JSON.parse(made.stdout) as { id: string; token: string; scope: string };
  expect([token, scope]).toEqual([expect.stringMatching(/^gh_[\w-]{43}$/), "agent:coder"]);
  expect(statSync(join(home.path, "state.db")).mode & 0o077).toBe(0);

  const plain = await home.run(["token", "create", "--scope", "read"]);
  expect(plain.stdout).toMatch(/^gh_[\w-]{43}\n$/);
  expect(plain.stderr).toContain("shown this once");

  const daemon = await home.start();
  const status = async (bearer: string): Promise<number> =>
    (await fetch(`${daemon.url}/api/openapi.json`, { headers: { authorization: `Bearer ${bearer}` } })).status;
  expect([await status(token), await status(plain.stdout.trim())]).toEqual([200, 200]);

  expect((await home.run(["token", "revoke", id])).stdout).toBe(`${id} (agent:coder) is revoked\n`);
  const { stdout } = await home.run(["token", "list", "--json"]);
  const { tokens } = JSON.parse(stdout) as { tokens: Record<string, unknown>[] };
  expect(tokens).toMatchObject([
    { id, scope: "agent:coder", name: "laptop", createdBy: "operator", revokedAt: expect.any(Number) },
    { scope: "read", name: null, revokedAt: null },
  ]);
  expect(stdout).not.toContain(token);
  expect((await home.run(["token", "list"])).stdout).toMatch(/^[0-9a-z]{20} {2}agent:coder {2}laptop {2}revoked\n[0-9a-z]{20} {2}read\n$/);
  await expect.poll(() => status(token), { timeout: 15_000 }).toBe(401);
});

test.each([
  [["token", "create", "--scope", "root"], 2, "usage.wrong", "--scope: expected operator, read"],
  [["token", "create", "--scope", "agent:codr"], 2, "agent.unknown", 'did you mean "coder"?'],
  [["token", "create", "--scope", "guest:coder"], 2, "request.malformed", "is the name of an agent"],
  [["token", "create", "--scope", "guest:operator"], 2, "request.malformed", "is reserved"],
  [["token", "revoke", "nothing"], 1, "request.not_found", 'there is no token "nothing"'],
])("%j is refused: exit %i, %s", async (args, exit, code, words) => {
  const { code: status, stdout, stderr } = await home.run(args);
  expect([status, stdout]).toEqual([exit, ""]);
  expect(stderr).toContain(`[${code}]`);
  expect(stderr).toContain(words);
});

test("without a scope it says how it is used", async () => {
  expect((await home.run(["token", "create"])).code).toBe(2);
  expect((await home.run(["token"])).code).toBe(2);
});
