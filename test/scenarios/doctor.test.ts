import { chmodSync, chownSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../free-port.ts";
import { Home } from "./guildhall.ts";

let home: Home;
let port: number;
beforeEach(async () => {
  port = await freePort();
  home = new Home();
  write("");
  chmodSync(home.path, 0o700);
});
afterEach(() => home.remove());

const at = (...names: string[]): string => join(home.path, ...names);
const write = (config: string): void => writeFileSync(at("guildhall.yaml"), `server: { port: ${port} }\n${config}`);

interface Check {
  readonly id: string;
  readonly severity: string;
  readonly found: string;
  readonly fix: string;
  readonly repaired: string | null;
}

async function doctor(
  ...args: string[]
): Promise<{ code: number | null; willStart: boolean; checks: Check[]; of(id: string): Check | undefined }> {
  const { code, stdout } = await home.run(["doctor", "--json", ...args]);
  const { willStart, checks } = JSON.parse(stdout) as { willStart: boolean; checks: Check[] };
  return { code, willStart, checks, of: (id) => checks.find((check) => check.id === id) };
}

describe("doctor", () => {
  test("says first whether the daemon will start, and makes nothing", async () => {
    const { code, stdout } = await home.run(["doctor"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^will start: yes\nok {7}versions {8}Node \d/);
    expect(stdout).toContain("jail");
    expect(existsSync(at("state.db"))).toBe(false);
    expect(existsSync(at("operator.token"))).toBe(false);
  });

  test("a config that cannot be read: no, with the place and what to write", async () => {
    write("agnets: {}\n");
    const { code, willStart, of } = await doctor();
    expect([code, willStart]).toEqual([1, false]);
    expect(of("config")).toMatchObject({
      severity: "error",
      found: expect.stringMatching(/guildhall\.yaml:2:1: agnets: unknown key/),
      fix: expect.stringMatching(/agents/),
    });
  });

  test("an agent with a broken section, a paused one and one without a model are named, and the others start", async () => {
    write(
      "agents:\n  main: {}\n  broken: { tools: [no_such_tool], sees: [nobody] }\n  resting: { state: paused }\n  mute: { model: nobody/knows }\n",
    );
    const { code, willStart, of } = await doctor();
    expect([code, willStart]).toEqual([1, true]);
    expect(of("agents")?.found).toBe("2 of 4 active");
    expect(of("agent.broken")).toMatchObject({ severity: "error", found: expect.stringContaining("guildhall.yaml:4") });
    expect(of("agent.resting")).toMatchObject({ severity: "warning", fix: "guildhall agents resume resting" });
    expect(of("agent.mute")).toMatchObject({ severity: "error", found: expect.stringContaining("nobody") });
  });

  test("--fix closes what others can read and makes missing folders, and says so", async () => {
    writeFileSync(at(".env"), "A=1\n");
    mkdirSync(at("agents", "main"), { recursive: true });
    for (const [path, mode] of [
      [at(), 0o755],
      [at(".env"), 0o644],
      [at("agents", "main"), 0o755],
    ] as const)
      chmodSync(path, mode);
    const before = await doctor();
    expect(before.code).toBe(0);
    expect(before.checks.filter(({ severity }) => severity === "warning").map(({ id }) => id)).toEqual([
      "home",
      "secrets",
      "agent-folders",
    ]);
    const fixed = await doctor("--fix");
    expect(fixed.checks.filter(({ severity }) => severity !== "ok")).toEqual([]);
    expect(fixed.of("secrets")?.repaired).toContain("took the rights of others");
    expect([at(), at(".env"), at("agents", "main")].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600, 0o700]);
    expect((await doctor("--fix")).of("agent-folders")?.repaired).toBe("made 1 folder");
    const again = await doctor("--fix");
    expect(again.checks.filter(({ repaired }) => repaired !== null)).toEqual([]);
  });

  // Only the administrator can give a folder to somebody else.
  test.skipIf(process.getuid?.() !== 0)("a home of another user: makes nothing in it that would be closed to that user", async () => {
    chownSync(home.path, 65_534, 65_534);
    const { willStart, of } = await doctor("--fix");
    expect([willStart, of("home-owner")?.severity]).toEqual([true, "warning"]);
    expect(existsSync(at("agents"))).toBe(false);
    chownSync(home.path, 0, 0);
    expect((await doctor("--fix")).of("home-owner")).toBeUndefined();
  });

  test("a port that another program has: no; that of our own daemon: yes, while it runs", async () => {
    const daemon = await home.start();
    const running = await doctor();
    expect([running.code, running.willStart, running.of("port")?.found]).toEqual([
      0,
      true,
      `a daemon of this home answers at ${daemon.url}`,
    ]);
    expect(running.of("store")).toMatchObject({ severity: "ok", found: expect.stringMatching(/it opens, schema \d+/) });
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
    await daemon.kill("SIGTERM");
    const taken = await doctor();
    await new Promise((resolve) => other.close(resolve));
    expect([taken.code, taken.willStart, taken.of("port")?.severity]).toEqual([1, false, "error"]);
  });

  test("a store that is damaged, or of a newer version: no, and it is left as it is", async () => {
    writeFileSync(at("state.db"), "this is no database, and long enough to be looked at");
    expect(await doctor()).toMatchObject({ code: 1, willStart: false });
    writeFileSync(at("state.db"), "");
    const database = new DatabaseSync(at("state.db"));
    database.exec(`PRAGMA application_id = ${0x4755494c};
      create table migrations (version integer, statement integer, name text, checksum text, at bigint);
      insert into migrations values (9999, 0, 'later', '', 0)`);
    database.close();
    const { willStart, of } = await doctor();
    expect(willStart).toBe(false);
    expect(of("store")?.found).toContain("schema 9999");
  });

  test("an agent whose workspace is a link has none", async () => {
    mkdirSync(at("agents", "main"), { recursive: true, mode: 0o700 });
    symlinkSync("/tmp", at("agents", "main", "workspace"));
    const { code, willStart, of } = await doctor("--fix");
    expect([code, willStart, of("agent-folders")?.severity]).toEqual([1, true, "error"]);
  });
});
