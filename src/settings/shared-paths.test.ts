import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sharedPathFindings } from "./shared-paths.ts";

let top: string;
let home: string;
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "guildhall-shared-")));
  home = join(top, "home");
  for (const folder of ["home/agents/alice/memory", "home/agents/bob/workspace/deep", "team-docs", "project/docs"])
    mkdirSync(join(top, folder), { recursive: true });
  writeFileSync(join(home, ".env"), "");
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

function problems(paths: readonly (string | { path: string; name?: string; mode?: string })[], configFile: string | null = null): string[] {
  const shared = paths.map((path) => (typeof path === "string" ? { path } : path));
  const value = { agents: { alice: { shared_paths: shared }, bob: {} } };
  return sharedPathFindings(value, ["alice", "bob"], { home, configFile }).map(
    ({ severity, path, message }) => `${severity} ${path.join(".")}: ${message}`,
  );
}

const refused = (path: string): unknown =>
  expect(problems([{ path, name: "x" }])).toEqual([expect.stringMatching(/^error agents\.alice\.shared_paths\.0\.path: /)]);

test("a folder of its own is fine, inside the home or not, counted from the config file's folder", () => {
  mkdirSync(join(home, "docs"));
  expect(problems(["docs", join(top, "team-docs"), "../project/docs/../../project"])).toEqual([]);
  expect(problems(["docs", "../team-docs"], join(top, "project", "guildhall.yaml"))).toEqual([]);
});

test("nothing that holds the home, its secrets or the config is shared", () => {
  for (const path of [".", "..", "/", home, top]) refused(path);
  expect(problems([{ path: ".", name: "x" }], join(top, "project", "guildhall.yaml"))).toEqual([
    expect.stringContaining("holds the home, or"),
  ]);
  mkdirSync(join(top, "vault"));
  rmSync(join(home, ".env"));
  writeFileSync(join(top, "vault", "env"), "");
  symlinkSync(join(top, "vault", "env"), join(home, ".env"));
  refused(join(top, "vault"));
});

test("nothing of another agent is shared, however it is reached", () => {
  symlinkSync(join(home, "agents", "bob"), join(top, "innocent"));
  symlinkSync("../innocent/workspace", join(top, "team-docs", "chain"));
  for (const path of ["agents", "agents/bob", "agents/bob/workspace/deep", "agents/alice/../bob", "agents/carol", "agents/carol/workspace"])
    refused(path);
  for (const path of ["../innocent", "../innocent/workspace/deep", "../team-docs/chain"]) refused(path);
  // A private folder that the operator moved to another disk.
  mkdirSync(join(top, "disk", "bobs"), { recursive: true });
  symlinkSync(join(top, "disk", "bobs"), join(home, "agents", "bob", "memory"));
  for (const path of ["../disk", "../disk/bobs", "../disk/bobs/inner"]) refused(path);
  expect(problems(["agents/alice/memory"])).toEqual([]);
});

test("names below shared/ are usable and different", () => {
  expect(problems([{ path: "../team-docs" }, { path: "../project/docs", name: "team-docs" }])).toEqual([
    expect.stringMatching(/^error agents\.alice\.shared_paths\.1\.path: .*both be called "team-docs"/),
  ]);
  mkdirSync(join(top, "my docs"));
  expect(problems(["../my docs"])).toEqual([expect.stringContaining("cannot be its name")]);
  expect(problems([{ path: "../my docs", name: "docs" }])).toEqual([]);
});

test("a file is refused, and a folder that is not there yet is a warning", () => {
  writeFileSync(join(top, "file"), "");
  refused("../file");
  expect(problems(["../later"])).toEqual([expect.stringMatching(/^warning .*there is no folder/)]);
});

test("nothing is shared that lies in a folder which an agent may write: a link could be put in its place", () => {
  mkdirSync(join(top, "team-docs", "inner"));
  mkdirSync(join(home, "agents", "alice", "workspace", "out"), { recursive: true });
  symlinkSync(join(top, "team-docs", "inner"), join(top, "elsewhere"));
  const inner = join(top, "team-docs", "inner");
  const outer = (mode: string) => ({ path: join(top, "team-docs"), mode });
  expect(problems([outer("ro"), { path: inner, mode: "rw" }])).toEqual([]);
  expect(problems([outer("rw"), { path: join(top, "team-docs"), name: "again" }])).toEqual([]);
  for (const path of [inner, join(top, "elsewhere"), join(inner, "not-yet")])
    expect(problems([outer("rw"), { path, name: "x" }])).toEqual([expect.stringMatching(/^error .*\.1\.path: an agent may write/)]);
  refused("agents/alice/workspace/out");
  const others = { agents: { alice: { shared_paths: [{ path: inner }] }, bob: { shared_paths: [outer("rw")] } } };
  expect(sharedPathFindings(others, ["alice", "bob"], { home, configFile: null })).toHaveLength(1);
  // And the link that was put there is not believed either.
  rmSync(inner, { recursive: true });
  symlinkSync(join(top, "project"), inner);
  expect(sharedPathFindings(others, ["alice", "bob"], { home, configFile: null })).toHaveLength(1);
});
