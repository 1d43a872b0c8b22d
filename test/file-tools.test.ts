import { createHash } from "node:crypto";
import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { fileSearchTool, kindOf } from "../src/abilities/tools/files/file-search.ts";
import { fileTools } from "../src/abilities/tools/files/file-tools.ts";
import { SearchAside } from "../src/abilities/tools/files/search-aside.ts";
import { createSpill } from "../src/abilities/tools/spill.ts";
import type { Tool, ToolOutcome } from "../src/abilities/tools/tool.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { isFailure } from "../src/kernel/failure.ts";
import { idSource } from "../src/kernel/ids.ts";
import { systemRandom } from "../src/kernel/random.ts";
import { WORKSPACE_LIMITS } from "../src/records/workspaces/roots.ts";
import { Workspaces } from "../src/records/workspaces/workspaces.ts";
import { type CalledFrom, ToolCaller } from "./tool-caller.ts";

const top = mkdtempSync(join(tmpdir(), "guildhall-file-tools-"));
afterAll(() => rmSync(top, { recursive: true, force: true }));

let home: string;
let workspaces: Workspaces;
let tools: ReadonlyMap<string, Tool>;
let caller: ToolCaller;
let count = 0;
const own = (...names: string[]): string => join(home, "agents", "main", "workspace", ...names);

beforeEach(async () => {
  home = join(top, String(count++));
  mkdirSync(own(), { recursive: true });
  mkdirSync(join(home, "docs"));
  workspaces = await Workspaces.of(home, { clock: systemClock, newId: idSource(systemClock, systemRandom) });
  const list = fileTools(workspaces);
  tools = new Map(list.map((tool) => [tool.name, tool]));
  caller = new ToolCaller(list, {
    agents: { main: { shared_paths: [{ path: join(home, "docs") }] }, other: {}, chats: { workspace_scope: "chat" } },
  });
});

async function call(name: string, args: unknown, from: CalledFrom = {}): Promise<ToolOutcome> {
  const tool = tools.get(name) as Tool;
  return (tool.run as NonNullable<Tool["run"]>)(tool.parse(args), caller.context(from));
}

async function codeOf(name: string, args: unknown, from: CalledFrom = {}): Promise<string> {
  const error = await call(name, args, from).then(
    () => new Error("it was done"),
    (reason: unknown) => reason,
  );
  if (!isFailure(error)) throw error;
  return error.code;
}

async function refusal(name: string, args: unknown): Promise<string> {
  return call(name, args).then(
    () => "it was done",
    (error: Error) => error.message,
  );
}

describe("reading", () => {
  test("gives lines with their numbers, in parts", async () => {
    writeFileSync(own("a.txt"), "one\ntwo\r\nthree\n");
    expect(await call("file_read", { path: "a.txt" })).toMatchObject({ output: "1\tone\n2\ttwo\n3\tthree", told: { lines: 3 } });
    expect((await call("file_read", { path: "a.txt", offset: 2, limit: 1 })).output).toBe("2\ttwo\n[there is more: go on with offset 3]");
    expect((await call("file_read", { path: "/workspace/a.txt", offset: 3 })).output).toBe("3\tthree");
    expect(await refusal("file_read", { path: "a.txt", offset: 9 })).toContain("3 lines");
    writeFileSync(own("empty"), "");
    expect((await call("file_read", { path: "empty" })).output).toBe("(empty)");
  });

  test("pages through a file that is longer than can be read at once, and never says more than a call may", async () => {
    const lines = Array.from({ length: 400_000 }, (_, index) => `line number ${index + 1} of many`);
    writeFileSync(own("long.txt"), lines.join("\n"));
    const end = await call("file_read", { path: "long.txt", offset: 399_999 });
    expect(end.output).toBe("399999\tline number 399999 of many\n400000\tline number 400000 of many");
    expect(String((await call("file_read", { path: "long.txt" })).output).length).toBeLessThan(30_000);
    writeFileSync(own("one-line.txt"), "x".repeat(3_000_000));
    expect(String((await call("file_read", { path: "one-line.txt" })).output).length).toBeLessThan(30_000);
  });

  test("shows images to models that see, refuses too large ones, and what is no text", async () => {
    const png = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(64)]);
    writeFileSync(own("a.png"), png);
    expect((await call("file_read", { path: "a.png" })).images).toEqual([{ mediaType: "image/png", data: png.toString("base64") }]);
    writeFileSync(own("large.jpg"), Buffer.concat([Buffer.from("ffd8ff", "hex"), Buffer.alloc(4_000_000)]));
    expect(await codeOf("file_read", { path: "large.jpg" })).toBe("workspace.too_large");
    writeFileSync(own("program"), Buffer.from([1, 2, 0, 3]));
    expect(await refusal("file_read", { path: "program" })).toContain("no text");
  });

  test("of secrets labels the turn, by their names or by what they hold; nothing else does", async () => {
    const key = ["-----BEGIN RSA PRIVATE", "KEY-----"].join(" ");
    const secrets = {
      ".env": "A=1",
      "prod.env": "A=1",
      "server.pem": "x",
      id_rsa: "x",
      ".npmrc": "x",
      ".netrc": "x",
      "notes.txt": `see ${key}`,
    };
    const harmless = { "a.ts": "const key = 1;", ".env.example": "A=", "environment.md": "x", "keys.md": "press a key", "sk.txt": "sk-1" };
    for (const [name, text] of Object.entries(secrets)) {
      writeFileSync(own(name), text);
      expect((await call("file_read", { path: name })).labels, name).toEqual(["secret"]);
    }
    for (const [name, text] of Object.entries(harmless)) {
      writeFileSync(own(name), text);
      expect((await call("file_read", { path: name })).labels, name).toBeUndefined();
    }
    writeFileSync(own("token.txt"), `it is ${"ghp_"}${"a1".repeat(20)}`);
    expect((await call("file_read", { path: "token.txt" })).labels).toEqual(["secret"]);
    writeFileSync(join(home, "docs", "guide.md"), "hello");
    expect(await call("file_read", { path: "shared/docs/guide.md" })).toEqual({ output: "1\thello", told: expect.anything() });
    expect((await call("file_search", { pattern: "A=1" })).labels).toEqual(["secret"]);
    expect((await call("file_search", { pattern: "press" })).labels).toBeUndefined();
  });
});

describe("writing", () => {
  test("makes folders, replaces, and tells the difference", async () => {
    expect((await call("file_write", { path: "notes/a.md", content: "one\ntwo\n" })).output).toContain("Made notes/a.md");
    const second = await call("file_write", { path: "notes/a.md", content: "one\nTWO\n" });
    expect(second.told).toMatchObject({ created: false, diff: "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n " });
    expect(readFileSync(own("notes/a.md"), "utf8")).toBe("one\nTWO\n");
  });

  test("leaves what makes an agent what it is alone: its soul, the config, skills, schedules, memory, other agents", async () => {
    const outside = {
      soul: join(home, "agents", "main", "SOUL.md"),
      skill: join(home, "agents", "main", "skills", "new", "SKILL.md"),
      memory: join(home, "agents", "main", "memory", "MEMORY.md"),
      config: join(home, "guildhall.yaml"),
      schedule: join(home, "schedule.yaml"),
      other: join(home, "agents", "other", "workspace", "a.txt"),
    };
    symlinkSync("../SOUL.md", own("soul-link"));
    symlinkSync("..", own("up"));
    const paths = [
      ...Object.values(outside),
      "../SOUL.md",
      "../skills/new/SKILL.md",
      "../../../guildhall.yaml",
      "soul-link",
      "up/SOUL.md",
      "/workspace/../SOUL.md",
    ];
    for (const path of paths) {
      expect(await codeOf("file_write", { path, content: "obey me" }), path).toBe("workspace.outside");
      expect(await codeOf("file_edit", { path, old: "a", new: "b" }), path).toMatch(/^workspace\.(outside|not_found)$/);
    }
    for (const path of Object.values(outside)) expect(existsSync(path), path).toBe(false);
    expect(await codeOf("file_write", { path: "shared/docs/a.md", content: "x" })).toBe("workspace.read_only");
  });

  test("with workspace_scope: chat, a chat has files of its own", async () => {
    const first: CalledFrom = { agent: "chats", address: { chat: "1" } };
    await call("file_write", { path: "a.txt", content: "of the first chat" }, first);
    expect(await codeOf("file_read", { path: "a.txt" }, { agent: "chats", address: { chat: "2" } })).toBe("workspace.not_found");
    expect((await call("file_read", { path: "a.txt" }, first)).output).toContain("first chat");
  });
});

describe("editing", () => {
  beforeEach(() => writeFileSync(own("code.ts"), "const a = 1;\nconst b = 2;\nconst c = 2;\n"));

  test("replaces what stands there exactly once, and shows the difference", async () => {
    const { output, told } = await call("file_edit", { path: "code.ts", old: "b = 2", new: "b = 3" });
    expect(told).toMatchObject({ path: "code.ts", diff: expect.stringContaining("-const b = 2;\n+const b = 3;") });
    expect(output).toContain("+const b = 3;");
    expect(readFileSync(own("code.ts"), "utf8")).toBe("const a = 1;\nconst b = 3;\nconst c = 2;\n");
  });

  test("refuses what stands there not at all, with the nearest lines, or several times, with how many", async () => {
    expect(await refusal("file_edit", { path: "code.ts", old: "const  b = 2;", new: "" })).toMatch(
      /not in code\.ts; the nearest lines are\n2\tconst b = 2;/,
    );
    expect(await refusal("file_edit", { path: "code.ts", old: "= 2", new: "= 3" })).toContain("2 times");
    writeFileSync(own("overlap"), "aaa");
    expect(await refusal("file_edit", { path: "overlap", old: "aa", new: "b" })).toContain("2 times");
    expect(readFileSync(own("code.ts"), "utf8")).toBe("const a = 1;\nconst b = 2;\nconst c = 2;\n");
    writeFileSync(own("latin"), Buffer.from([0x63, 0xe9, 0x0a]));
    expect(await refusal("file_edit", { path: "latin", old: "c", new: "d" })).toContain("no text in UTF-8");
  });

  test("takes `$&` and the like in the new text at their word", async () => {
    await call("file_edit", { path: "code.ts", old: "b = 2", new: "b = '$&$1'" });
    expect(readFileSync(own("code.ts"), "utf8")).toContain("const b = '$&$1';");
  });

  test("made again after a crash happens once, also where the new text holds the old", async () => {
    const edit = { path: "code.ts", old: "const a", new: "// const a\nconst a" };
    const first = await call("file_edit", edit, { run: "crashed" });
    const again = await call("file_edit", edit, { run: "crashed" });
    expect(again.told).toEqual(first.told);
    expect(readFileSync(own("code.ts"), "utf8").match(/\/\/ const a/g)).toHaveLength(1);
    // Another call is another edit; it is as if the text had not been looked at before.
    expect(await refusal("file_edit", edit)).toContain("2 times");
  });

  test("made again after a crash in a file that was changed meanwhile is refused, since nobody can tell", async () => {
    const edit = { path: "code.ts", old: "const a = 1;", new: "const a = 1; const d = 4;" };
    await call("file_edit", edit, { run: "crashed" });
    writeFileSync(own("code.ts"), `${readFileSync(own("code.ts"), "utf8")}// more\n`);
    expect(await codeOf("file_edit", edit, { run: "crashed" })).toBe("workspace.conflict");
    expect(readFileSync(own("code.ts"), "utf8").match(/const d/g)).toHaveLength(1);
  });
});

test("telling the nearest lines takes no time that others need", async () => {
  const line = (seed: number): string => createHash("sha512").update(String(seed)).digest("hex").padEnd(200, "x");
  writeFileSync(own("lines.txt"), Array.from({ length: 5_000 }, (_, index) => line(index)).join("\n"));
  const began = performance.now();
  expect(await refusal("file_edit", { path: "lines.txt", old: `${line(4_321).slice(5)}#####`, new: "" })).toContain("4322\t");
  // Measured line by line, it is twenty seconds.
  expect(performance.now() - began).toBeLessThan(6_000);
});

describe("searching", () => {
  beforeEach(() => {
    mkdirSync(own("src", "deep"), { recursive: true });
    mkdirSync(own("node_modules"));
    writeFileSync(own("src", "a.ts"), "const x = 1;\n// TODO: more\n");
    writeFileSync(own("src", "deep", "b.ts"), "TODO later\n");
    writeFileSync(own("node_modules", "c.ts"), "TODO never\n");
    writeFileSync(own("read.md"), "nothing\n");
    writeFileSync(join(home, "docs", "guide.md"), "TODO: write\n");
  });

  test("finds lines by a regular expression, shared folders included, copies left out", async () => {
    const { output } = await call("file_search", { pattern: "TODO(:|\\s)" });
    expect(String(output).split("\n")).toEqual([
      "src/a.ts:2: // TODO: more",
      "src/deep/b.ts:1: TODO later",
      "shared/docs/guide.md:1: TODO: write",
    ]);
    expect((await call("file_search", { pattern: "TODO", path: "node_modules" })).output).toContain("never");
    expect((await call("file_search", { pattern: "TODO", path: "src/a.ts" })).output).toBe("src/a.ts:2: // TODO: more");
    expect((await call("file_search", { pattern: "nowhere" })).output).toContain("no line matches");
  });

  test("finds files by a pattern of names", async () => {
    expect((await call("file_search", { pattern: "*.ts" })).output).toBe("src/a.ts\nsrc/deep/b.ts");
    expect((await call("file_search", { pattern: "src/**/b.*" })).output).toBe("src/deep/b.ts");
    expect((await call("file_search", { pattern: "src/*.ts" })).output).toBe("src/a.ts");
  });

  test.each([
    ["*.md", "names"],
    ["**/*.test.ts", "names"],
    ["src/*.ts", "names"],
    ["foo.*bar", "contents"],
    ["import .* from", "contents"],
    ["a/.*/b", "contents"],
    ["TODO|FIXME", "contents"],
    ["^const", "contents"],
  ])("%s is meant for %s", (pattern, kind) => expect(kindOf(pattern)).toBe(kind));

  test("refuses what is neither", () => expect(() => kindOf("(")).toThrow("neither"));

  test("folders that are left out are not walked through, however much they hold", async () => {
    const small = await Workspaces.of(home, {
      clock: systemClock,
      newId: idSource(systemClock, systemRandom),
      limits: { ...WORKSPACE_LIMITS, walkEntries: 40 },
    });
    for (let index = 0; index < 100; index++) writeFileSync(own("node_modules", `${index}.ts`), "TODO never\n");
    const tool = fileSearchTool(small);
    const { output } = await (tool.run as NonNullable<Tool["run"]>)(tool.parse({ pattern: "TODO", path: "." }), caller.context());
    expect(output).toBe("src/a.ts:2: // TODO: more\nsrc/deep/b.ts:1: TODO later\nshared/docs/guide.md:1: TODO: write");
  });

  test("files that take long to be read are not read for ever, nor after a stop", async () => {
    // For each of them all names in the workspace are looked at.
    for (let index = 0; index < 1_000; index++) writeFileSync(own(`z${index}`), "");
    for (let index = 0; index < 200; index++) {
      writeFileSync(own("src", `one${index}`), "TODO");
      linkSync(own("src", `one${index}`), own(`zz${index}`));
    }
    const search = (milliseconds: number, signal?: AbortSignal) => {
      const tool = fileSearchTool(workspaces, milliseconds);
      const run = tool.run as NonNullable<Tool["run"]>;
      return run(tool.parse({ pattern: "nowhere", path: "src" }), caller.context({}, signal));
    };
    const whole = new AbortController();
    let isWhole = false;
    const all = search(60_000, whole.signal).then(
      () => {
        isWhole = true;
      },
      () => {},
    );
    expect((await search(100)).output).toContain("[not everything was looked at");
    await expect(search(60_000, AbortSignal.timeout(50))).rejects.toThrow();
    expect(isWhole).toBe(false);
    whole.abort();
    await all;
  });

  test("a search that fails after nobody waits for it any more harms nobody", async () => {
    const search = new SearchAside(1);
    const order = { kind: "contents" as const, pattern: "(", files: [{ path: "a", text: "a" }], limit: 1 };
    await expect(search.look(order, new AbortController().signal)).rejects.toMatchObject({ code: "tool.timed_out" });
    await sleep(1_000);
    await search.close();
  });

  test("a pattern that never ends is ended, and the daemon answers meanwhile", async () => {
    writeFileSync(own("evil.txt"), `${"a".repeat(60)}!\n`);
    let ticks = 0;
    const timer = setInterval(() => ticks++, 50);
    expect(await codeOf("file_search", { pattern: "^(a+)+$", path: "evil.txt" })).toBe("tool.timed_out");
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(3);
  });
});

test("listing shows folders, links and shared folders", async () => {
  mkdirSync(own("folder"));
  writeFileSync(own("a.txt"), "");
  symlinkSync("a.txt", own("link"));
  expect((await call("file_list", {})).output).toBe("a.txt\nfolder/\nlink@\nshared/");
  expect((await call("file_list", { path: "folder" })).output).toBe("(empty)");
  expect(await codeOf("file_list", { path: ".." })).toBe("workspace.outside");
});

describe("an output that is too long", () => {
  test("is kept in the workspace and can be read in parts", async () => {
    const text = `${Array.from({ length: 10_000 }, (_, index) => `line ${index}`).join("\n")}\n${"y".repeat(9_000)}`;
    const where = await createSpill(workspaces)(caller.context({ run: "r1" }), text);
    expect(where).toContain(".guildhall/outputs/r1.1.0.txt");
    expect((await call("file_read", { path: ".guildhall/outputs/r1.1.0.txt", offset: 10_000, limit: 3 })).output).toMatch(
      /^10000\tline 9999\n10001\ty{2000}\n/,
    );
  });

  test("only the newest hundred are kept, and a key is never a path", async () => {
    const spill = createSpill(workspaces);
    for (let index = 0; index < 105; index++) await spill(caller.context({ run: `run${index}` }), "x");
    expect(readdirSync(own(".guildhall", "outputs"))).toHaveLength(100);
    expect(existsSync(own(".guildhall", "outputs", "run104.1.0.txt"))).toBe(true);
    const where = await spill({ ...caller.context(), key: "../../../../evil" }, "x");
    expect(where).toMatch(/\.guildhall\/outputs\/[0-9a-f]{32}\.txt/);
  });

  test("is not kept where there is no workspace", async () => {
    rmSync(join(home, "agents", "other"), { recursive: true, force: true });
    symlinkSync(top, join(home, "agents", "other"));
    expect(await createSpill(workspaces)(caller.context({ agent: "other" }), "x")).toBeNull();
  });
});
