import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SharedPath } from "../../src/contract/config.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { seededRandom, systemRandom } from "../../src/kernel/random.ts";
import { jailKind } from "../../src/records/workspaces/jail-kind.ts";
import type { Workspace } from "../../src/records/workspaces/workspace.ts";
import { Workspaces } from "../../src/records/workspaces/workspaces.ts";
import { SEED } from "../models/seed.ts";

const CANARY = "CANARY of somebody else";
let top: string;
let home: string;
let inside: string;
let outside: string;
let workspace: Workspace;

async function workspaceOf(id: string, sharedPaths: readonly SharedPath[] = []): Promise<Workspace> {
  const workspaces = await Workspaces.of(home, { clock: systemClock, newId: idSource(systemClock, systemRandom) });
  return workspaces.workspace({ id, workspaceScope: "agent", sharedPaths }, null, { configFile: null });
}

beforeEach(async () => {
  top = mkdtempSync(join(tmpdir(), "guildhall-jail-"));
  home = join(top, "home");
  inside = join(home, "agents/alice/workspace");
  outside = join(top, "outside");
  mkdirSync(outside);
  for (const name of ["secret.txt", "victim.txt", "file.txt", "only-outside"]) writeFileSync(join(outside, name), CANARY);
  workspace = await workspaceOf("alice");
  await workspace.makeDirectory("folder");
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

/** What came back, or the code of the refusal. */
async function outcome(verb: Promise<unknown>): Promise<string> {
  try {
    const answer = await verb;
    const bytes = (answer as { bytes?: Uint8Array } | undefined)?.bytes;
    return bytes ? Buffer.from(bytes).toString("latin1") : JSON.stringify(answer ?? "done");
  } catch (error) {
    return String((error as { code?: unknown }).code);
  }
}

const outcomes = (verbs: readonly Promise<unknown>[]): Promise<string[]> => Promise.all(verbs.map(outcome));

function everythingOutside(): unknown {
  return readdirSync(outside).map((name) => [name, readFileSync(join(outside, name), "latin1"), statSync(join(outside, name)).ino]);
}

describe("ASI05: a path out of the workspace is refused", () => {
  let before: unknown;
  beforeEach(() => {
    before = everythingOutside();
  });
  afterEach(() => expect(everythingOutside()).toEqual(before));

  const verbsOn = (path: string): Promise<unknown>[] => [
    workspace.read(path),
    workspace.write(path, "overwritten"),
    workspace.list(path),
    workspace.makeDirectory(`${path}/new`),
    workspace.walk(path, async () => true),
    workspace.rename(path, "taken"),
    workspace.rename("folder", `${path}/given`),
  ];
  const allRefused = async (path: string): Promise<void> => {
    expect(new Set(await outcomes(verbsOn(path)))).toEqual(new Set(["workspace.outside"]));
  };

  test("`..` and absolute paths", async () => {
    for (const path of [
      "../memory",
      "folder/../../x",
      "../../bob/workspace/x",
      "/etc",
      "/",
      outside,
      `${inside}/../x`,
      `${inside}-other/x`,
    ])
      await allRefused(path);
    // A name that begins like the workspace's is another name.
    mkdirSync(`${inside}-other`);
    writeFileSync(`${inside}-other/x`, CANARY);
    expect(await outcome(workspace.read(`${inside}-other/x`))).toBe("workspace.outside");
  });

  test("symlink out of the workspace", async () => {
    symlinkSync(outside, join(inside, "link"));
    await allRefused("link");
    for (const path of ["link/secret.txt", "link/only-outside"]) await allRefused(path);
    expect(await outcome(workspace.remove("link/victim.txt"))).toBe("workspace.outside");
    expect(await outcome(workspace.remove("link/sub", { recursive: true }))).toBe("workspace.outside");
    expect(await workspace.stat("link")).toMatchObject({ kind: "link" });
    await workspace.remove("link", { recursive: true });
    expect(readdirSync(inside)).toEqual(["folder"]);
  });

  test("relative chain of links", async () => {
    symlinkSync("folder/second", join(inside, "first"));
    symlinkSync("../third", join(inside, "folder/second"));
    symlinkSync("folder/../../../../../outside", join(inside, "third"));
    for (const path of ["first", "first/secret.txt", "folder/second/secret.txt", "third/secret.txt"]) await allRefused(path);
    symlinkSync("first/secret.txt", join(inside, "file"));
    expect(await outcome(workspace.read("file"))).toBe("workspace.outside");
  });

  test("dangling link then write", async () => {
    symlinkSync(join(outside, "new.txt"), join(inside, "dangling"));
    symlinkSync("folder/later.txt", join(inside, "inner"));
    await allRefused("dangling");
    expect(await outcome(workspace.write("dangling/deeper", "x"))).toBe("workspace.outside");
    expect(await outcome(workspace.write("inner", "x"))).toBe("workspace.outside");
    expect(readdirSync(join(inside, "folder"))).toEqual([]);
  });

  test("hard link to outside", async () => {
    linkSync(join(outside, "secret.txt"), join(inside, "hard"));
    linkSync(join(outside, "secret.txt"), join(inside, "folder/hard"));
    for (const path of ["hard", "folder/hard"]) {
      expect(await outcome(workspace.read(path))).toBe("workspace.outside");
      expect(await outcome(workspace.write(path, "overwritten"))).toBe("workspace.outside");
    }
    const read: string[] = [];
    await workspace.walk(".", async (found) => read.push(await outcome(found.read())) > 0);
    expect(read).toEqual(["workspace.conflict", "workspace.outside", "workspace.outside"]);
    // All of its names are inside once the one outside is gone.
    unlinkSync(join(outside, "secret.txt"));
    expect(await outcome(workspace.read("hard"))).toBe(CANARY);
    linkSync(join(inside, "hard"), join(outside, "secret.txt"));
  });

  test("pipes, sockets and devices are not even opened", async () => {
    execFileSync("bash", ["-c", 'mkfifo "$0"', join(inside, "pipe")]);
    const server = createServer(() => expect.unreachable("somebody connected")).listen(join(inside, "socket"));
    await once(server, "listening");
    for (const name of ["pipe", "socket"]) {
      expect(await outcome(workspace.read(name))).toBe("workspace.outside");
      expect(await outcome(workspace.write(name, "x"))).toBe("workspace.outside");
      expect(await workspace.stat(name)).toMatchObject({ kind: "other" });
    }
    server.close();
  });

  test("a workspace that is a link itself is none", async () => {
    mkdirSync(join(home, "agents/bob"), { recursive: true });
    writeFileSync(join(inside, "secret.txt"), CANARY);
    symlinkSync("../alice/workspace", join(home, "agents/bob/workspace"));
    const bob = await workspaceOf("bob");
    expect(await outcomes([bob.read("secret.txt"), bob.write("x", "x"), bob.list()])).toEqual(Array(3).fill("workspace.unavailable"));
  });

  test("a home that was replaced while the daemon ran is not the home", async () => {
    renameSync(home, `${home}-moved`);
    symlinkSync(`${home}-moved`, home);
    expect(await outcome(workspace.list())).not.toBe("workspace.unavailable");
    unlinkSync(home);
    mkdirSync(inside, { recursive: true });
    expect(await outcome(workspace.list())).toBe("workspace.unavailable");
  });

  test("where nothing can be opened safely, nothing is", async () => {
    expect(jailKind("linux", "/nowhere")).toBe("none");
    expect(jailKind("win32")).toBe("none");
    const options = { clock: systemClock, newId: idSource(systemClock, systemRandom), kind: "none" as const };
    await expect(Workspaces.of(home, options)).rejects.toMatchObject({ code: "workspace.unavailable" });
  });
});

describe("ASI05: shared_paths", () => {
  test("a link into another agent's workspace is refused, also when it was made after the config was read", async () => {
    const bobs = join(home, "agents/bob/workspace");
    mkdirSync(join(bobs, "deep"), { recursive: true });
    writeFileSync(join(bobs, "secret.txt"), CANARY);
    writeFileSync(join(bobs, "deep/secret.txt"), CANARY);
    mkdirSync(join(top, "docs"));
    writeFileSync(join(top, "docs/secret.txt"), "inside");
    symlinkSync(join(top, "docs"), join(top, "shared"));
    const alice = await workspaceOf("alice", [{ path: "../shared", mode: "rw", name: "team" }]);
    expect(await outcome(alice.read("shared/team/secret.txt"))).toBe("inside");
    for (const place of [bobs, join(bobs, "deep"), join(home, "agents/bob"), join(home, "agents"), home, top, "/"]) {
      unlinkSync(join(top, "shared"));
      symlinkSync(place, join(top, "shared"));
      const verbs = [alice.read("shared/team/secret.txt"), alice.write("shared/team/new", "x"), alice.list("shared/team")];
      expect([place, ...(await outcomes(verbs))]).toEqual([place, ...Array(3).fill("workspace.outside")]);
    }
    expect(readdirSync(bobs)).toEqual(["deep", "secret.txt"]);
  });

  test("links inside a shared folder lead nowhere else, hard links included", async () => {
    mkdirSync(join(top, "docs"));
    mkdirSync(join(home, "agents/bob/workspace"), { recursive: true });
    writeFileSync(join(home, "agents/bob/workspace/secret.txt"), CANARY);
    symlinkSync(join(home, "agents/bob/workspace"), join(top, "docs/link"));
    symlinkSync("../home/agents/bob/workspace/secret.txt", join(top, "docs/file"));
    linkSync(join(home, "agents/bob/workspace/secret.txt"), join(top, "docs/hard"));
    const alice = await workspaceOf("alice", [{ path: "../docs", mode: "rw" }]);
    for (const path of ["link/secret.txt", "file", "hard"])
      expect(await outcome(alice.read(`shared/docs/${path}`))).toBe("workspace.outside");
    expect(await outcome(alice.write("shared/docs/link/new", "x"))).toBe("workspace.outside");
  });
});

describe("ASI05: parent directory swapped between check and open", () => {
  test("thousands of verbs race with a process that swaps folders and files for links: nothing outside is read or changed", async () => {
    console.log(`seed ${SEED}`);
    const random = seededRandom(SEED);
    const before = everythingOutside();
    const swapper = fork(new URL("./swap-worker.ts", import.meta.url), [inside, outside], { execArgv: [], stdio: "inherit" });
    const counts = { done: 0, refused: 0, missing: 0 };
    try {
      await once(swapper, "message");
      const paths = ["folder/secret.txt", "nest/inner/secret.txt", "file.txt"];
      const verbs: readonly ((path: string) => Promise<unknown>)[] = [
        (path) => workspace.read(path),
        (path) => workspace.read(path),
        () => workspace.read("blink.txt"),
        (path) => workspace.write(path, "inside"),
        (path) => workspace.list(path.replace(/\/?[^/]+$/, "") || "."),
        (path) => workspace.remove(path.replace("secret", "victim")),
        (path) => workspace.makeDirectory(path.replace("secret.txt", "made")),
        (path) => workspace.rename(path, path.replace("secret", "victim")),
      ];
      const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random.fraction() * items.length)] as Item;
      const one = async (): Promise<void> => {
        const seen = await outcome(pick(verbs)(pick(paths)));
        expect(seen).not.toContain("CANARY");
        expect(seen).not.toContain("only-outside");
        if (seen === "workspace.outside") counts.refused++;
        else if (seen.startsWith("workspace.")) counts.missing++;
        else counts.done++;
      };
      for (let round = 0; round < 600 || (round < 6_000 && Math.min(counts.done, counts.refused) < 50); round++)
        await Promise.all(Array.from({ length: 6 }, one));
    } finally {
      const gone = once(swapper, "exit");
      swapper.disconnect();
      await gone;
    }
    console.log(`raced: ${JSON.stringify(counts)}`);
    expect(counts.done).toBeGreaterThan(0);
    expect(counts.refused).toBeGreaterThan(0);
    expect(everythingOutside()).toEqual(before);
  }, 120_000);

  test("no verb leaves a descriptor open, whether it succeeds or fails", () => {
    const worker = new URL("./descriptors-worker.ts", import.meta.url).pathname;
    const { before, after, verbs, failed } = JSON.parse(
      execFileSync(process.execPath, [worker, join(top, "counted")], { encoding: "utf8" }),
    );
    expect(failed).toBeGreaterThan(100);
    expect(failed).toBeLessThan(verbs);
    expect(after).toBe(before);
  }, 60_000);
});

test("in any tree of files and links, what is read lies inside", async () => {
  const names = ["a", "b", "c"] as const;
  const path = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
  const target = fc.oneof(
    path,
    path.map((below) => `../${below}`),
    fc.constantFrom("..", "../..", ".", "../../../../../outside", "../../../../../outside/secret.txt", "../../../bob/workspace/secret.txt"),
    fc.constantFrom("outside", "outside/secret.txt").map((name) => `TOP/${name}`),
    path.map((below) => `TOP/home/agents/alice/workspace/${below}`),
  );
  const made = fc.oneof(
    fc.record({ kind: fc.constant("file" as const), path }),
    fc.record({ kind: fc.constant("link" as const), path, target }),
    fc.record({
      kind: fc.constant("hard" as const),
      path,
      target: fc.constantFrom("outside/secret.txt", "home/agents/bob/workspace/secret.txt"),
    }),
  );
  mkdirSync(join(home, "agents/bob/workspace"), { recursive: true });
  writeFileSync(join(home, "agents/bob/workspace/secret.txt"), CANARY);
  console.log(`seed ${SEED}`);
  const before = everythingOutside();
  let inner = 0;
  let refused = 0;
  const property = fc.asyncProperty(
    fc.array(made, { maxLength: 12 }),
    fc.array(path, { minLength: 1, maxLength: 6 }),
    async (tree, asked) => {
      for (const name of readdirSync(inside)) rmSync(join(inside, name), { recursive: true, force: true });
      for (const thing of tree) {
        try {
          mkdirSync(join(inside, thing.path, ".."), { recursive: true });
          // Through links of this very tree the outside would be changed here, not by the jail.
          if (!lstatSync(join(inside, thing.path, "..")).isDirectory() || !realInside(join(inside, thing.path, ".."))) continue;
          if (thing.kind === "file") writeFileSync(join(inside, thing.path), "inside", { flag: "wx" });
          else if (thing.kind === "link") symlinkSync(thing.target.replace("TOP", top), join(inside, thing.path));
          else linkSync(join(top, thing.target), join(inside, thing.path));
        } catch {
          // The name is taken, or a file is where a folder would have to be.
        }
      }
      for (const path of asked) {
        const read = await outcome(workspace.read(path));
        expect(read).toMatch(/^(inside|workspace\.\w+)$/);
        if (read === "inside") inner++;
        if (read === "workspace.outside") refused++;
        expect(await outcome(workspace.write(`${path}/x`, "inside"))).not.toContain("CANARY");
      }
      expect(everythingOutside()).toEqual(before);
    },
  );
  await fc.assert(property, { seed: SEED, numRuns: 80 });
  expect(inner).toBeGreaterThan(10);
  expect(refused).toBeGreaterThan(10);
}, 60_000);

/** By the system's own way of following links, which the jail does not use. */
function realInside(path: string): boolean {
  return `${realpathSync(path)}/`.startsWith(`${realpathSync(inside)}/`);
}
