import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SharedPath } from "../../contract/config.ts";
import { systemClock } from "../../kernel/clock.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import { WORKSPACE_LIMITS, type WorkspaceLimits } from "./roots.ts";
import type { Visited, Workspace } from "./workspace.ts";
import { Workspaces } from "./workspaces.ts";

let home: string;
let inside: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-workspace-"));
  inside = join(home, "agents", "alice", "workspace");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function workspaceOf(shared: readonly SharedPath[] = [], limits: Partial<WorkspaceLimits> = {}): Promise<Workspace> {
  const options = { clock: systemClock, newId: idSource(systemClock, systemRandom), limits: { ...WORKSPACE_LIMITS, ...limits } };
  const workspaces = await Workspaces.of(home, options);
  const workspace = workspaces.workspace({ id: "alice", workspaceScope: "agent", sharedPaths: shared }, null, { configFile: null });
  await workspace.list();
  return workspace;
}

const textOf = async (workspace: Workspace, path: string): Promise<string> => Buffer.from((await workspace.read(path)).bytes).toString();
const namesIn = async (workspace: Workspace, path?: string): Promise<string[]> =>
  (await workspace.list(path)).entries.map(({ name }) => name);
const refusal = (verb: Promise<unknown>): Promise<string> =>
  verb.then(
    () => "done",
    (error) => String(error.code),
  );

describe("files", () => {
  test("are written with the folders above them, read, listed, moved and removed", async () => {
    const workspace = await workspaceOf();
    expect(await workspace.write("a/b/c.txt", "one")).toEqual({ created: true, size: 3 });
    expect(await workspace.write("./a//b/../b/c.txt", "three")).toEqual({ created: false, size: 5 });
    expect(await textOf(workspace, join(inside, "a/b/c.txt"))).toBe("three");
    expect(await workspace.makeDirectory("a/d")).toEqual({ created: true });
    expect(await workspace.makeDirectory("a/d")).toEqual({ created: false });
    expect(await workspace.list("a")).toEqual({
      entries: [
        { name: "b", kind: "directory" },
        { name: "d", kind: "directory" },
      ],
      more: false,
      unusable: 0,
    });
    await workspace.rename("a/b/c.txt", "e/f.txt");
    expect(await refusal(workspace.read("a/b/c.txt"))).toBe("workspace.not_found");
    expect(await workspace.stat("e/f.txt")).toMatchObject({ kind: "file", size: 5, executable: false });
    expect(await refusal(workspace.remove("a"))).toBe("workspace.conflict");
    await workspace.remove("a", { recursive: true });
    await workspace.remove("e/f.txt");
    expect(await namesIn(workspace)).toEqual(["e"]);
  });

  test("are for this user alone, and keep the mode they have, without the right to act as another user", async () => {
    const workspace = await workspaceOf();
    await workspace.write("folder/run.sh", "echo");
    expect([inside, join(inside, "folder")].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
    expect(statSync(join(inside, "folder/run.sh")).mode & 0o777).toBe(0o600);
    chmodSync(join(inside, "folder/run.sh"), 0o4755);
    await workspace.write("folder/run.sh", "echo again");
    expect(statSync(join(inside, "folder/run.sh")).mode & 0o7777).toBe(0o755);
  });

  test("are read in parts, and whole only within the limit", async () => {
    const workspace = await workspaceOf([], { fileBytes: 10 });
    writeFileSync(join(inside, "large"), "0123456789abcdef");
    expect(await refusal(workspace.read("large"))).toBe("workspace.too_large");
    expect(await workspace.read("large", { offset: 4, limit: 4 })).toEqual({ bytes: Buffer.from("4567"), offset: 4, size: 16, more: true });
    expect((await workspace.read("large", { limit: 1_000 })).bytes.length).toBe(10);
    expect(await workspace.read("large", { offset: 10 })).toMatchObject({ bytes: Buffer.from("abcdef"), more: false });
    expect(await workspace.read("large", { offset: 99, limit: 5 })).toMatchObject({ bytes: Buffer.from(""), more: false });
    expect(await refusal(workspace.read("large", { offset: -1 }))).toBe("workspace.malformed");
    expect(await refusal(workspace.write("small", "01234567890"))).toBe("workspace.too_large");
    expect(await namesIn(workspace)).toEqual(["large"]);
  });

  test("appear whole: a reader sees the old content or the new", async () => {
    const workspace = await workspaceOf();
    const contents = ["a", "b"].map((letter) => letter.repeat(200_000));
    await workspace.write("file", contents[0] as string);
    let done = false;
    const writer = (async () => {
      for (let round = 1; round <= 40; round++) await workspace.write("file", contents[round % 2] as string);
      done = true;
    })();
    while (!done) {
      const seen = readFileSync(join(inside, "file"), "utf8");
      expect([seen.length, seen.at(0)]).toEqual([200_000, seen.at(-1)]);
      await new Promise(setImmediate);
    }
    await writer;
    expect(readdirSync(inside)).toEqual(["file"]);
  });

  test("that a killed process left half written are hidden, and swept after an hour", async () => {
    const workspace = await workspaceOf();
    const [fresh, old] = ["00000000000000000000", "11111111111111111111"].map((id) => join(inside, `.guildhall-${id}.partial`)) as [
      string,
      string,
    ];
    for (const file of [fresh, old]) writeFileSync(file, "half");
    utimesSync(old, new Date(Date.now() - 3_700_000), new Date(Date.now() - 3_700_000));
    expect(await namesIn(workspace)).toEqual([]);
    expect([existsSync(fresh), existsSync(old)]).toEqual([true, false]);
  });
});

describe("limits", () => {
  test("few verbs hold handles at a time, however many are called, and a walk may call others", async () => {
    const workspace = await workspaceOf();
    for (let index = 0; index < 100; index++) writeFileSync(join(inside, `${index}`), "x");
    const open = (): number => readdirSync("/proc/self/fd").length;
    const before = open();
    let most = 0;
    const walks = Array.from({ length: 40 }, () =>
      workspace.walk(".", async ({ path }) => {
        await workspace.read(path);
        return path !== "12";
      }),
    );
    const reads = Array.from({ length: 1_000 }, async (_, index) => {
      await workspace.read(`${index % 100}`);
      most = Math.max(most, open());
    });
    await Promise.all([...walks, ...reads]);
    // A walk has two, a reader three and one that is being closed.
    expect(most - before).toBeLessThan(40 * 4 + 32 * 5);
  });

  test("a folder with more than can be removed at once is gone after some calls, wherever its entries are", async () => {
    const workspace = await workspaceOf([], { walkEntries: 10 });
    for (let folder = 0; folder < 12; folder++) {
      mkdirSync(join(inside, `tree/${folder}`), { recursive: true });
      writeFileSync(join(inside, `tree/${folder}/file`), "");
    }
    const outcomes: string[] = [];
    while (outcomes.length < 10 && outcomes.at(-1) !== "done") outcomes.push(await refusal(workspace.remove("tree", { recursive: true })));
    expect(outcomes).toEqual(["workspace.too_large", "workspace.too_large", "done"]);
    expect(readdirSync(inside)).toEqual([]);
  });

  test("names that no path can have are counted in a listing up to its limit", async () => {
    const workspace = await workspaceOf([], { walkEntries: 10 });
    for (let index = 0; index < 20; index++) writeFileSync(join(inside, `\n${index}`), "");
    expect(await workspace.list()).toEqual({ entries: [], more: true, unusable: 10 });
  });

  test("what was found by a walk cannot be read when the walk is over: its handle may be another's by then", async () => {
    const workspace = await workspaceOf();
    await workspace.write("folder/file", "x");
    const found: Visited[] = [];
    await workspace.walk(".", async (visited) => found.push(visited) > 0);
    expect(found).toHaveLength(2);
    for (const { read } of found) expect(await refusal(read())).toBe("workspace.refused");
  });

  test("a listing ends where it must, and says so", async () => {
    const workspace = await workspaceOf([], { listEntries: 3 });
    for (const name of ["a", "b", "c"]) writeFileSync(join(inside, name), "");
    expect(await workspace.list()).toMatchObject({ entries: { length: 3 }, more: false });
    writeFileSync(join(inside, "d"), "");
    expect(await workspace.list()).toMatchObject({ entries: { length: 3 }, more: true });
  });

  test("so do a walk and a removal", async () => {
    const workspace = await workspaceOf([], { walkEntries: 5 });
    for (const name of ["a", "b", "c", "d", "e", "f"]) await workspace.write(`tree/${name}`, "");
    const seen: string[] = [];
    expect(await workspace.walk(".", async ({ path }) => seen.push(path) > 0)).toEqual({ more: true });
    expect(seen).toHaveLength(5);
    expect(await refusal(workspace.remove("tree", { recursive: true }))).toBe("workspace.too_large");
  });

  test("a walk goes as deep as allowed and can be ended", async () => {
    const workspace = await workspaceOf([], { depth: 3 });
    await workspace.write("1/2/3/4/5", "deep");
    const seen: string[] = [];
    expect(await workspace.walk(".", async ({ path }) => seen.push(path) > 0)).toEqual({ more: true });
    expect(seen).toEqual(["1", "1/2", "1/2/3", "1/2/3/4"]);
    expect(await workspace.walk("1/2", async () => false)).toEqual({ more: true });
  });

  test("names that no path may hold are refused, and left out of listings", async () => {
    const workspace = await workspaceOf();
    writeFileSync(join(inside, "bell\u0007"), "");
    writeFileSync(Buffer.concat([Buffer.from(join(inside, "latin-")), Buffer.from([0xe9])]), "");
    expect(await workspace.list()).toEqual({ entries: [], more: false, unusable: 2 });
    for (const path of ["a\0b", "a\nb", "a\u009bb", "\ud800", "x".repeat(256), `${"x/".repeat(2_100)}y`])
      expect(await refusal(workspace.write(path, ""))).toBe("workspace.malformed");
  });
});

describe("links inside the workspace", () => {
  test("are followed to be read, and through folders, not to be written", async () => {
    const workspace = await workspaceOf();
    await workspace.write("store/pkg/index.js", "code");
    symlinkSync("store/pkg", join(inside, "pkg"));
    symlinkSync("../pkg/../store/pkg/index.js", join(inside, "store/again"));
    symlinkSync(join(inside, "store"), join(inside, "absolute"));
    for (const path of ["pkg/index.js", "store/again", "absolute/pkg/index.js", "absolute/again"])
      expect(await textOf(workspace, path)).toBe("code");
    expect(await namesIn(workspace, "absolute")).toEqual(["again", "pkg"]);
    await workspace.write("pkg/new/file", "through a folder");
    expect(readFileSync(join(inside, "store/pkg/new/file"), "utf8")).toBe("through a folder");
    expect(await refusal(workspace.write("store/again", "x"))).toBe("workspace.outside");
    expect(await workspace.stat("store/again")).toMatchObject({ kind: "link" });
  });

  test("that go round in a circle, or nowhere, are refused", async () => {
    const workspace = await workspaceOf();
    symlinkSync("b", join(inside, "a"));
    symlinkSync("a", join(inside, "b"));
    symlinkSync("missing", join(inside, "dangling"));
    expect(await refusal(workspace.read("a"))).toBe("workspace.outside");
    expect(await refusal(workspace.list("a/x"))).toBe("workspace.outside");
    expect(await refusal(workspace.read("dangling"))).toBe("workspace.not_found");
    expect(await refusal(workspace.write("dangling/new", ""))).toBe("workspace.not_found");
    expect(existsSync(join(inside, "missing"))).toBe(false);
  });

  test("hard links among themselves are files like others", async () => {
    const workspace = await workspaceOf();
    await workspace.write("store/a.js", "code");
    mkdirSync(join(inside, "modules"));
    linkSync(join(inside, "store/a.js"), join(inside, "modules/a.js"));
    linkSync(join(inside, "store/a.js"), join(inside, "modules/b.js"));
    expect(await textOf(workspace, "modules/b.js")).toBe("code");
    // Written anew, and not in the place that the others share.
    await workspace.write("modules/b.js", "mine");
    expect(await textOf(workspace, "store/a.js")).toBe("code");
  });

  test("hard links are looked for within the limit only", async () => {
    const workspace = await workspaceOf([], { walkEntries: 4 });
    mkdirSync(join(inside, "far"));
    writeFileSync(join(inside, "a"), "code");
    linkSync(join(inside, "a"), join(inside, "far/a"));
    expect(await textOf(workspace, "a")).toBe("code");
    for (const name of ["b", "c", "d"]) writeFileSync(join(inside, name), "");
    expect(await refusal(workspace.read("a"))).toBe("workspace.outside");
  });
});

describe("shared folders", () => {
  const docs = (): string => join(home, "team-docs");
  beforeEach(() => {
    mkdirSync(docs());
    writeFileSync(join(docs(), "readme.md"), "shared words");
  });

  test("appear below shared/ and under their own path", async () => {
    const workspace = await workspaceOf([{ path: "team-docs", mode: "rw", name: "docs" }]);
    mkdirSync(join(inside, "shared"));
    writeFileSync(join(inside, "shared", "hidden"), "");
    await workspace.write("own", "");
    expect(await namesIn(workspace)).toEqual(["own", "shared"]);
    expect(await namesIn(workspace, "shared")).toEqual(["docs"]);
    expect(await textOf(workspace, "shared/docs/readme.md")).toBe("shared words");
    expect(await textOf(workspace, join(docs(), "readme.md"))).toBe("shared words");
    await workspace.write("shared/docs/new/file", "also");
    expect(readFileSync(join(docs(), "new/file"), "utf8")).toBe("also");
    const seen: string[] = [];
    await workspace.walk(".", async ({ path, kind, read }) => {
      seen.push(kind === "file" ? `${path}=${Buffer.from((await read()).bytes)}` : path);
      return true;
    });
    expect(seen).toEqual(["own=", "shared/docs/new", "shared/docs/readme.md=shared words", "shared/docs/new/file=also"]);
    for (const path of ["shared/hidden", "shared/other/file", join(inside, "shared/hidden")])
      expect(await refusal(workspace.read(path))).toBe("workspace.not_found");
    expect(await refusal(workspace.read("shared/docs/../../../x"))).toBe("workspace.outside");
  });

  test("that are for reading are changed by no verb", async () => {
    const workspace = await workspaceOf([{ path: docs(), mode: "ro" }]);
    await workspace.write("mine", "");
    const at = "shared/team-docs";
    const verbs = [
      workspace.write(`${at}/readme.md`, "x"),
      workspace.write(join(docs(), "new"), "x"),
      workspace.makeDirectory(`${at}/new`),
      workspace.remove(`${at}/readme.md`),
      workspace.remove(at, { recursive: true }),
      workspace.rename(`${at}/readme.md`, "taken"),
      workspace.rename("mine", `${at}/given`),
    ];
    expect(await Promise.all(verbs.map(refusal))).toEqual([
      ...Array(4).fill("workspace.read_only"),
      "workspace.conflict",
      ...Array(2).fill("workspace.read_only"),
    ]);
    expect(readdirSync(docs())).toEqual(["readme.md"]);
  });
});
