import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sha256 } from "../../src/kernel/canonical-json.ts";
import { openStore } from "../../src/store/store.ts";
import { type Ended, Home } from "./guildhall.ts";

const NOBODY = 65534;

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.remove());

/**
 * Every file with the hash of its bytes. Left out: the lock, an empty file that is there from the first attempt on, and what SQLite
 * itself puts beside a database that is only looked at (an index in memory and an empty log).
 */
function contents(): Record<string, string> {
  const entries = readdirSync(home.path).map((name) => [name, join(home.path, name)] as const);
  const files = entries.filter(
    ([name, path]) =>
      statSync(path).isFile() && !/^daemon\.lock$|-shm$/.test(name) && !(name.endsWith("-wal") && statSync(path).size === 0),
  );
  return Object.fromEntries(files.map(([name, path]) => [name, sha256(readFileSync(path))]));
}

/** Every command that opens the store says the same: what is wrong, its code, the next step; and nothing is changed. */
async function refused(code: string, words: string, nextStep: string, options: { uid?: number; gid?: number } = {}): Promise<void> {
  const before = contents();
  for (const args of [
    ["start", "--port", "0"],
    ["chat", "-m", "hello"],
  ]) {
    const ended: Ended = await home.run(args, options);
    expect([ended.code, ended.stdout]).toEqual([2, ""]);
    const [line = "", hint = "", ...rest] = ended.stderr.split("\n");
    expect(line).toContain(words);
    expect(line).toMatch(new RegExp(`^guildhall: .* \\[${code.replace(".", "\\.")}\\]$`));
    expect(hint).toContain(nextStep);
    expect(rest).toEqual([""]);
    expect(contents()).toEqual(before);
  }
}

async function usedDatabase(): Promise<string> {
  const path = join(home.path, "state.db");
  const store = await openStore(`sqlite:${path}`);
  await store.transact("use", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["test"] }));
  await store.close();
  return path;
}

test("a file that is no database", async () => {
  writeFileSync(join(home.path, "state.db"), "This is not a database, but somebody's letter.\n".repeat(100));
  await refused("store.corrupt", "state.db is damaged or is not a database", "Move the file away, then restore a backup");
});

test("another program's database", async () => {
  const { DatabaseSync } = await import("node:sqlite");
  const db = new DatabaseSync(join(home.path, "state.db"));
  db.exec("create table theirs (x)");
  db.close();
  await refused("store.corrupt", "another program's database", "Choose another --home");
});

test("a database with a damaged page", async () => {
  const file = openSync(await usedDatabase(), "r+");
  writeSync(file, Buffer.alloc(4096, 0xff), 0, 4096, 2 * 4096);
  closeSync(file);
  await refused("store.corrupt", "is damaged", "Move the file away, then restore a backup");
});

test("a database that was cut short", async () => {
  const path = await usedDatabase();
  writeFileSync(path, readFileSync(path).subarray(0, 3 * 4096));
  await refused("store.corrupt", "is damaged", "Move the file away, then restore a backup");
});

test("a database of a newer version", async () => {
  const { DatabaseSync } = await import("node:sqlite");
  const db = new DatabaseSync(await usedDatabase());
  db.exec("insert into migrations (version, statement, name, checksum, at) values (99, 0, 'from the future', 'x', 0)");
  db.close();
  await refused("store.newer_schema", "the database has schema 99", "Upgrade Guildhall");
});

test("a PostgreSQL that cannot be reached", async () => {
  writeFileSync(join(home.path, "guildhall.yaml"), "store: postgres://user:secret@127.0.0.1:1/db\n");
  await refused("store.unreachable", "PostgreSQL at 127.0.0.1:1/db cannot be reached", "Check the address in `store:`");
});

test("a config with a mistake", async () => {
  writeFileSync(join(home.path, "guildhall.yaml"), "# mine\nmodle: offline/demo\n");
  await refused("config.invalid", 'guildhall.yaml:2:1: modle: unknown key (did you mean "model"?)', "Write model instead.");
});

// As root no permission binds: then the commands run as the user that owns nothing. Elsewhere the tests' own user is refused.
const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

test("a home that this user cannot write", async () => {
  chmodSync(home.path, 0o555);
  await refused("home.unusable", "this user cannot write there", "Make the directory writable", asNobody);
  chmodSync(home.path, 0o755);
});

test("a home that cannot be made", async () => {
  chmodSync(home.path, 0o555);
  const inner = join(home.path, "inner");
  const { code, stderr } = await home.run(["start", "--home", inner, "--port", "0"], asNobody);
  expect([code, stderr]).toEqual([2, expect.stringContaining("[home.unusable]")]);
  chmodSync(home.path, 0o755);
  mkdirSync(inner);
});

test("a database that this user cannot write", async () => {
  const path = await usedDatabase();
  chmodSync(home.path, 0o777);
  chmodSync(path, 0o444);
  await refused("store.unwritable", "state.db cannot be read and written by this user", "Make the directory and file writable", asNobody);
});
