import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";
import { Agent, type Answer, guestToken, Repository } from "./mcp-clients.ts";

const SLOW = 60_000;
const WORKER = new URL("./agent-worker.ts", import.meta.url).pathname;
let home: Home;
let repository: Repository;
let daemon: RunningDaemon;
let hosts: Host[];

// One for all: a test has a repository of its own.
beforeAll(async () => {
  home = new Home();
  daemon = await home.start();
});
afterAll(() => home.remove());
beforeEach(() => {
  repository = new Repository();
  hosts = [];
});
afterEach(() => {
  for (const host of hosts) host.end();
  repository.remove();
});

/** Claims as somebody who is not a program here. */
async function claimed(name: string, ...files: readonly string[]): Promise<Agent> {
  const { stdout } = await home.run(["guard", "where", "--json"], { cwd: repository.path });
  const workspace = { repository: (JSON.parse(stdout) as { repository: string }).repository, tops: ["/elsewhere"], prefix: "" };
  const agent = await Agent.http(daemon, (await guestToken(daemon, name)).token, workspace);
  await agent.call("claim", { files });
  return agent;
}

interface HookResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program of its own with an agent in it: what runs under this one would be taken for the same agent. */
class Host {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(cwd: string, ...name: readonly string[]) {
    this.#child = spawn(process.execPath, [WORKER, home.path, cwd, ...name], { stdio: ["pipe", "pipe", "ignore"] });
    this.#lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
    hosts.push(this);
  }

  call(call: string, args: object = {}): Promise<Answer> {
    return this.#ask({ call, args });
  }

  hook(input: object): Promise<HookResult> {
    return this.#ask({ input });
  }

  end(): void {
    this.#child.stdin?.end();
  }

  async #ask<T>(question: object): Promise<T> {
    this.#child.stdin?.write(`${JSON.stringify(question)}\n`);
    const { value } = await this.#lines.next();
    return JSON.parse(value as string) as T;
  }
}

function write(file: string, session: string, cwd = repository.path): object {
  return {
    session_id: session,
    transcript_path: "/tmp/t.jsonl",
    cwd,
    permission_mode: "default",
    hook_event_name: "PreToolUse",
    tool_name: "Write",
    tool_input: { file_path: file, content: "x" },
    tool_use_id: "toolu_1",
  };
}

test("as a Claude Code hook it knows whose program asks, stops the others, and remembers the session", { timeout: SLOW }, async () => {
  const [one, two] = [new Host(repository.path), new Host(repository.path)];
  const name = (await one.call("whoami")).data.name as string;
  await two.call("whoami");
  await one.call("claim", { files: ["a.ts"] });
  const file = join(repository.path, "a.ts");
  expect(await one.hook(write(file, "session-one"))).toMatchObject({ code: 0, stderr: "" });
  const refused = await two.hook(write(file, "session-two"));
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(new RegExp(`^a.ts is claimed by ${name} until .*\\nYou are claude-code-\\d\\. Do not write`));
  expect(refused.stdout).toBe("");
  // Known sessions are recognised wherever their hooks run; strangers are nobody, and nobody may write what is claimed.
  const guard = ["guard", "--hook"];
  expect((await home.run(guard, { input: JSON.stringify(write(file, "session-one")) })).code).toBe(0);
  const stranger = await home.run(guard, { input: JSON.stringify(write(file, "session-three")) });
  expect(stranger.code).toBe(2);
  expect(stranger.stderr).toContain("It is not known which agent you are");
  expect((await home.run([...guard, "--name", name], { input: JSON.stringify(write(file, "session-three")) })).code).toBe(0);
  // Other files are free, and new ones in folders that do not exist yet.
  expect((await two.hook(write(join(repository.path, "b.ts"), "session-two"))).code).toBe(0);
  expect((await two.hook(write(join(repository.path, "new/deep/c.ts"), "session-two"))).code).toBe(0);
  expect((await two.hook({ ...write("", "session-two"), tool_name: "Bash", tool_input: { command: "ls" } })).code).toBe(0);
});

test("patterns, worktrees and the hooks of other programs", { timeout: SLOW }, async () => {
  const tree = repository.worktree("feature");
  await claimed("holder", "src/**");
  mkdirSync(join(tree, "src"));
  const ask = (input: object) => home.run(["guard", "--hook"], { cwd: tree, input: JSON.stringify(input) });
  expect((await ask(write("src/x.ts", "s", tree))).code).toBe(2);
  const patch = "*** Begin Patch\n*** Update File: README.md\n@@\n*** Add File: src/new.ts\n+x\n*** End Patch";
  expect(
    (await ask({ session_id: "s", cwd: tree, hook_event_name: "PreToolUse", tool_name: "apply_patch", tool_input: { command: patch } }))
      .code,
  ).toBe(2);
  expect(
    (
      await ask({
        session_id: "s",
        cwd: tree,
        hook_event_name: "BeforeTool",
        tool_name: "write_file",
        tool_input: { file_path: "src/x.ts" },
      })
    ).code,
  ).toBe(2);
  const cursor = {
    conversation_id: "c",
    workspace_roots: [tree],
    hook_event_name: "preToolUse",
    tool_name: "Write",
    tool_input: { file_path: "src/x.ts" },
  };
  const denied = await ask(cursor);
  expect(denied.code).toBe(2);
  expect(JSON.parse(denied.stdout)).toMatchObject({ permission: "deny", agent_message: expect.stringContaining("claimed by") });
  expect((await ask({ ...cursor, tool_input: { file_path: "b.ts" } })).stdout).toBe("{}\n");
  expect((await ask({ sessionID: "o", directory: tree, args: { filePath: join(tree, "src/x.ts") } })).code).toBe(2);
  expect((await home.run(["guard", "b.ts", "src/x.ts"], { cwd: tree })).code).toBe(1);
  expect((await home.run(["guard", "b.ts"], { cwd: tree })).code).toBe(0);
});

test("as a git hook it stops the commit of a claimed file, in every worktree, and leaves other hooks alone", {
  timeout: SLOW,
}, async () => {
  const hook = join(repository.path, ".git/hooks/pre-commit");
  expect((await home.run(["guard", "install", "--git"], { cwd: repository.path })).code).toBe(0);
  expect((await home.run(["guard", "install", "--git"], { cwd: repository.path })).stdout).toContain("already");
  expect(readFileSync(hook, "utf8").match(/guard --git/g)).toHaveLength(1);
  const coder = await claimed("coder", "a.ts");
  const tree = repository.worktree("feature");
  const commit = (file: string, environment: Record<string, string> = {}): string => {
    repository.write(tree, file, `${Math.random()}`);
    Object.assign(process.env, environment);
    try {
      repository.git(tree, "commit", "-qam", "change");
      return "committed";
    } catch (error) {
      repository.git(tree, "reset", "-q", "--hard");
      return String((error as { stderr: string }).stderr);
    } finally {
      for (const name of Object.keys(environment)) delete process.env[name];
    }
  };
  expect(commit("a.ts")).toContain("a.ts is claimed by coder");
  expect(commit("b.ts")).toBe("committed");
  expect(commit("a.ts", { GUILDHALL_NAME: "coder" })).toBe("committed");
  await coder.call("claim_release", { all: true });
  expect(commit("a.ts")).toBe("committed");
  // Without a daemon nobody can be asked, and work goes on.
  await coder.close();
  await daemon.kill("SIGTERM");
  expect(commit("b.ts")).toBe("committed");
  expect((await home.run(["guard", "a.ts"], { cwd: tree })).stderr).toContain("no daemon runs");
  daemon = await home.start();
});

test("neither strange names, nor a great many files, nor what git is told about differences get a claimed file past it", {
  timeout: 2 * SLOW,
}, async () => {
  await claimed("coder", "a.ts", "deep/**", "zz.ts");
  const { path } = repository;
  const staged = async (...files: string[]) => {
    repository.git(path, "reset", "-q");
    for (const file of files) repository.git(path, "add", "--", file);
    return home.run(["guard", "--git"], { cwd: path });
  };
  const deep = `deep/${"x/".repeat(60)}`;
  const strange = ["with\nnewline.ts", "ünïcode 🎉.ts", "star*.ts", `${"l".repeat(200)}.ts`];
  for (const folder of [deep, "sub"]) mkdirSync(join(path, folder), { recursive: true });
  for (const file of [...strange, "a.ts", `${deep}f.ts`, "sub/c.ts"]) repository.write(path, file, "2\n");
  expect(await staged(...strange)).toMatchObject({ code: 0, stderr: "" });
  expect(await staged(...strange, "a.ts")).toMatchObject({ code: 1, stderr: expect.stringContaining("a.ts is claimed by coder") });
  expect(await staged(`${deep}f.ts`)).toMatchObject({ code: 1, stderr: expect.stringContaining("claimed by coder") });
  // Deleted or renamed, it is written as well; and from a folder below all files of the commit count.
  repository.git(path, "reset", "-q", "--hard");
  repository.git(path, "mv", "a.ts", "z.ts");
  expect((await home.run(["guard", "--git"], { cwd: path })).code).toBe(1);
  repository.git(path, "config", "diff.relative", "true");
  repository.git(path, "config", "diff.renames", "copies");
  expect((await home.run(["guard", "--git"], { cwd: join(path, "sub") })).code).toBe(1);
  mkdirSync(join(path, "many"));
  for (let index = 0; index < 10_001; index++) writeFileSync(join(path, `many/${index}`), "");
  expect(await staged("many")).toMatchObject({ code: 0, stderr: "" });
  repository.write(path, "zz.ts", "1\n");
  repository.git(path, "add", "zz.ts");
  expect((await home.run(["guard", "--git"], { cwd: path })).code).toBe(1);
});

test("a link that leads nowhere yet leads to the claimed file", { timeout: SLOW }, async () => {
  await claimed("coder", "new/planned.ts");
  const { path } = repository;
  symlinkSync("new/planned.ts", join(path, "innocent.ts"));
  symlinkSync("new", join(path, "folder"));
  const ask = (file: string) => home.run(["guard", "--hook"], { cwd: path, input: JSON.stringify(write(join(path, file), "s")) });
  expect((await ask("innocent.ts")).code).toBe(2);
  expect((await ask("folder/planned.ts")).code).toBe(2);
  expect((await ask("folder/other.ts")).code).toBe(0);
  symlinkSync("circle", join(path, "circle"));
  expect((await ask("circle")).code).toBe(0);
});

test("a daemon that does not answer stops nobody, nor does a guard that was removed", { timeout: SLOW }, async () => {
  const { path } = repository;
  await home.run(["guard", "install", "--git"], { cwd: path });
  await claimed("coder", "a.ts");
  daemon.kill("SIGSTOP");
  const silent = await home.run(["guard", "a.ts"], { cwd: path });
  daemon.kill("SIGCONT");
  expect(silent).toMatchObject({ code: 0, stderr: expect.stringContaining("could not be asked") });
  repository.write(path, "a.ts", "2\n");
  expect(() => repository.git(path, "commit", "-qam", "change")).toThrow("claimed by coder");
  const hook = join(path, ".git/hooks/pre-commit");
  writeFileSync(hook, readFileSync(hook, "utf8").replaceAll("guildhall.js", "guildhall-gone.js"));
  repository.git(path, "commit", "-qam", "change");
});
