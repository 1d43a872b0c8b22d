import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemRandom } from "../kernel/random.ts";
import { readDaemonFile, removeDaemonFile, writeDaemonFile } from "./daemon-file.ts";
import { homeId } from "./home-id.ts";
import { lockHome } from "./home-lock.ts";
import { ensureOperatorToken, readOperatorToken } from "./operator-token.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-home-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe("the lock", () => {
  test("has one holder at a time, and says who it is", () => {
    const lock = lockHome(home);
    writeDaemonFile(home, { url: "http://127.0.0.1:1", pid: 12, version: "0", node: "n" });
    expect(() => lockHome(home)).toThrow(
      expect.objectContaining({ code: "daemon.already_running", message: expect.stringContaining("process 12") }),
    );
    lock.release();
    lockHome(home).release();
  });

  test("makes the home, open to its owner only", () => {
    lockHome(join(home, "new", "home")).release();
    expect(statSync(join(home, "new", "home")).mode & 0o777).toBe(0o700);
  });

  test("cannot be had where the home is a file", () => {
    writeFileSync(join(home, "file"), "");
    expect(() => lockHome(join(home, "file"))).toThrow(expect.objectContaining({ code: "home.unusable" }));
  });
});

describe("the id", () => {
  test("is the same as long as the home is where it is", () => {
    const { id, elsewhere } = homeId(home, "alpha", systemRandom);
    expect(id).toMatch(/^[0-9a-f]{24}$/);
    expect(elsewhere).toBeNull();
    expect(homeId(home, "alpha", systemRandom)).toEqual({ id, elsewhere: null });
  });

  test("is another one on the clone of a machine, and says where it was before, once", () => {
    const { id } = homeId(home, "alpha", systemRandom);
    const cloned = homeId(home, "beta", systemRandom);
    expect(cloned).toEqual({ id: expect.stringMatching(/^[0-9a-f]{24}$/), elsewhere: `alpha:${home}` });
    expect(cloned.id).not.toBe(id);
    expect(homeId(home, "beta", systemRandom)).toEqual({ id: cloned.id, elsewhere: null });
  });

  test("is another one in a copy on the same machine", () => {
    const { id } = homeId(home, "alpha", systemRandom);
    const copy = join(home, "copy");
    cpSync(join(home, "node.id"), join(copy, "node.id"));
    expect(homeId(copy, "alpha", systemRandom).id).not.toBe(id);
    expect(homeId(home, "alpha", systemRandom).id).toBe(id);
  });

  test("of which half was written is drawn again", () => {
    writeFileSync(join(home, "node.id"), "");
    expect(homeId(home, "alpha", systemRandom).id).toMatch(/^[0-9a-f]{24}$/);
  });
});

describe("the operator's token", () => {
  test("is made once, long, and for its owner's eyes", () => {
    const token = ensureOperatorToken(home, systemRandom);
    expect(token).toMatch(/^[\w-]{43}$/);
    chmodSync(join(home, "operator.token"), 0o644);
    expect(ensureOperatorToken(home, systemRandom)).toBe(token);
    expect(statSync(join(home, "operator.token")).mode & 0o777).toBe(0o600);
  });

  test("that was cut short by a crash is made anew", () => {
    writeFileSync(join(home, "operator.token"), "");
    expect(readOperatorToken(home)).toBeUndefined();
    expect(ensureOperatorToken(home, systemRandom)).toBe(readFileSync(join(home, "operator.token"), "utf8").trim());
  });
});

test("the daemon's file tells where it answers, and nonsense in it counts as none", () => {
  const address = { url: "http://127.0.0.1:1", pid: 1, version: "0", node: "n" };
  writeDaemonFile(home, address);
  expect(readDaemonFile(home)).toEqual(address);
  writeFileSync(join(home, "daemon.json"), "{");
  expect(readDaemonFile(home)).toBeUndefined();
  removeDaemonFile(home);
  removeDaemonFile(home);
});
