import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { runtimeTools } from "../../src/abilities/tools/runtime/runtime-tools.ts";
import { networkOf } from "../../src/abilities/tools/runtime/sandbox-of.ts";
import type { Tool, ToolOutcome } from "../../src/abilities/tools/tool.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { BackgroundPrograms } from "../../src/records/workspaces/sandbox/background.ts";
import { Sandboxes } from "../../src/records/workspaces/sandbox/sandboxes.ts";
import { Workspaces } from "../../src/records/workspaces/workspaces.ts";
import { longestStop } from "../longest-stop.ts";
import { type CalledFrom, ToolCaller } from "../tool-caller.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-terminal-"));
const newId = idSource(systemClock, systemRandom);
const workspaces = await Workspaces.of(home, { clock: systemClock, newId });
const sandboxes = new Sandboxes(workspaces, { newId, node: process.execPath });
const background = new BackgroundPrograms(sandboxes, { clock: systemClock, newId, limits: { running: 3, ended: 2 } });
const { works } = await sandboxes.state();
const tools = runtimeTools({ workspaces, sandboxes, background });
const [terminal, process_] = tools as [Tool, Tool];
const caller = new ToolCaller(tools, {
  agents: {
    main: { tools: ["terminal", "process"], env: { AGENT_TOKEN: "of-the-agent" } },
    other: { tools: ["terminal", "process"] },
    chats: { tools: ["terminal", "process"], workspace_scope: "chat" },
    bare: { sandbox: "none", tools: ["terminal"] },
    open: { sandbox: { network: "full" }, tools: ["terminal"] },
    web: { tools: ["terminal", "web_fetch"] },
    asks: { tools: { allow: ["terminal", "web_fetch"], ask: ["web_fetch"] } },
    closed: { tools: ["terminal", "web_fetch"], sandbox: { network: "none" } },
  },
});
const own = (...names: string[]): string => join(home, "agents", "main", "workspace", ...names);
mkdirSync(own(), { recursive: true });

afterAll(async () => {
  await sandboxes.close();
  rmSync(home, { recursive: true, force: true });
});

const run = (args: unknown, from: CalledFrom = {}, signal?: AbortSignal): Promise<ToolOutcome> =>
  caller.call("terminal", args, from, signal);

describe("the network of programs", () => {
  test.each([
    ["main", "none"],
    ["web", "guarded"],
    ["asks", "none"],
    ["closed", "none"],
    ["open", "full"],
    ["bare", "full"],
  ])("of %s is %s", (agent, network) => {
    const context = caller.context({ agent });
    expect(networkOf(context)).toBe(network);
    const asks = (rule: Tool["egress"]): boolean => (typeof rule === "function" ? rule(context, {}) : rule);
    expect(asks(terminal.egress)).toBe(network !== "none");
    expect(asks(terminal.consequential)).toBe(network === "full");
  });
});

describe.skipIf(!works)("a command", () => {
  test("answers what it said and how it ended, and tells both while it runs", async () => {
    const told: string[] = [];
    const context = { ...caller.context(), progress: (text: string) => told.push(text) };
    const args = terminal.parse({ command: "echo one; sleep 0.4; echo two >&2; exit 4" });
    const outcome = await (terminal.run as NonNullable<Tool["run"]>)(args, context);
    expect(outcome).toEqual({ output: "one\ntwo\n[exit code 4]", failed: true, told: { code: 4, sandbox: "bubblewrap", network: "none" } });
    expect(told).toEqual(["one\n", "two\n"]);
    expect(await run({ command: "true" })).toMatchObject({ output: "(no output)", told: { code: 0 } });
  });

  test("takes no longer than it may", async () => {
    expect(await run({ command: "echo began; sleep 60", timeout_s: 1 })).toMatchObject({
      output: "began\n[ended after 1 s: it had not ended by itself]",
      failed: true,
      told: { ended: "timeout" },
    });
  });

  test("that is stopped ends, and is not taken for done", async () => {
    const stop = new AbortController();
    const running = run({ command: "echo x > stop-began; sleep 60; echo x > stop-done" }, {}, stop.signal);
    while (!existsSync(own("stop-began"))) await sleep(20);
    stop.abort(new Error("stopped"));
    await expect(running).rejects.toThrow("stopped");
    expect(existsSync(own("stop-done"))).toBe(false);
  });

  test("labels the turn by what it has seen", async () => {
    writeFileSync(own(".env"), "A=1");
    expect((await run({ command: "cat .env" })).labels).toEqual(["secret"]);
    expect((await run({ command: `echo ghp_${"a1".repeat(20)}` })).labels).toEqual(["secret"]);
    expect((await run({ command: "echo hello" })).labels).toBeUndefined();
    expect((await run({ command: "echo hello" }, { agent: "web" })).labels).toBeUndefined();
    const fetched = await run({ command: "curl -s -m 2 http://192.168.0.1/; true" }, { agent: "web" });
    expect(fetched).toMatchObject({ labels: ["external"], told: { hosts: ["192.168.0.1:80"] } });
    expect((await run({ command: "echo hello" }, { agent: "open" })).labels).toEqual(["external"]);
  });

  test("in a sandbox that does not work is refused with its name", async () => {
    const broken = new Sandboxes(workspaces, { newId, node: process.execPath, bubblewrap: "/nowhere/bwrap" });
    const [refusing] = runtimeTools({ workspaces, sandboxes: broken, background });
    const asked = (refusing as Tool).run?.((refusing as Tool).parse({ command: "true" }), caller.context());
    await expect(asked).rejects.toMatchObject({ code: "sandbox.unavailable" });
  });

  test.each([
    [{}],
    [{ command: "" }],
    [{ command: "a\0b" }],
    [{ command: "x".repeat(30_001) }],
    [{ command: "a", timeout_s: 601 }],
    [{ command: "a", cwd: "/" }],
  ])("%# of another form is refused", (args) =>
    expect(() => terminal.parse(args)).toThrow(expect.objectContaining({ code: "tool.bad_arguments" })),
  );
});

describe.skipIf(!works)("an approval of a command", () => {
  const bound = async (command: string, from: CalledFrom = {}): Promise<unknown> =>
    terminal.boundTo?.(terminal.parse({ command }), caller.context(from));

  test("is void once a script it starts has changed, also one that is started by another, or found in a folder", async () => {
    mkdirSync(own("tools", "lib"), { recursive: true });
    writeFileSync(own("tools", "build.sh"), "#!/bin/sh\n. ./lib/common.sh\n");
    writeFileSync(own("tools", "lib", "common.sh"), "echo common\n");
    writeFileSync(own("unrelated.txt"), "1");
    writeFileSync(own("package.json"), "{}");
    for (const [command, file] of [
      ["sh tools/build.sh --all", "tools/build.sh"],
      ["sh tools/build.sh", "tools/lib/common.sh"],
      ["cd tools && ./build.sh", "tools/build.sh"],
      ["sh '/workspace/tools/build.sh'; true", "tools/build.sh"],
      ["npm test", "package.json"],
    ] as const) {
      const before = await bound(command);
      expect(await bound(command), command).toEqual(before);
      const kept = readFileSync(own(file), "utf8");
      writeFileSync(own(file), `${kept}\n# changed`);
      expect(await bound(command), command).not.toEqual(before);
      writeFileSync(own(file), kept);
      writeFileSync(own("unrelated.txt"), String(Math.random()));
      expect(await bound(command), command).toEqual(before);
    }
  });

  test("takes no time that others need, however much a script names, and says that not everything was looked at", async () => {
    const folders = Array.from({ length: 900 }, (_, index) => `many/f${index}`);
    for (const folder of folders) mkdirSync(own(folder), { recursive: true });
    writeFileSync(own("folders.txt"), folders.map((folder) => `/workspace/${folder}`).join(" "));
    writeFileSync(own("words.txt"), Array.from({ length: 200_000 }, (_, index) => index.toString(36)).join(" "));
    let bound: unknown;
    const { stopMs } = await longestStop(async () => {
      bound = await terminal.boundTo?.(terminal.parse({ command: "sh folders.txt words.txt" }), caller.context());
    });
    // Every word in every folder would take minutes.
    expect(stopMs).toBeLessThan(8_000);
    expect(Object.keys((bound as { files: object }).files)).toEqual(["(more)", "folders.txt", "words.txt"]);
    rmSync(own("many"), { recursive: true });
  });

  test("is void in another environment, folder or network", async () => {
    const all = await Promise.all(["main", "web", "bare"].map((agent) => bound("ls", { agent })));
    expect(new Set(all.map((one) => JSON.stringify(one))).size).toBe(3);
    expect(JSON.stringify(all)).not.toContain("of-the-agent");
    const chats = await Promise.all(["1", "2"].map((chat) => bound("ls", { agent: "chats", address: { chat } })));
    // In a sandbox every workspace is /workspace; what is in it is what counts.
    expect(chats[0]).toEqual(chats[1]);
  });
});

describe.skipIf(!works)("programs in the background", () => {
  const startOne = async (command: string, from: CalledFrom = {}): Promise<string> => {
    const { told } = await run({ command, background: true }, from);
    return String(told?.process);
  };
  const processes = (args: unknown, from: CalledFrom = {}): Promise<ToolOutcome> => caller.call("process", args, from);

  test("go on, are listed, say their last, and end", async () => {
    const id = await startOne("echo ready; sleep 60");
    while (!String((await processes({ action: "output", id })).output).includes("ready")) await sleep(20);
    expect((await processes({ action: "list" })).output).toContain(`${id}  running`);
    expect((await processes({ action: "end", id })).output).toContain("was ended");
    expect((await processes({ action: "end", id })).output).toContain("was ended");
    const quick = await startOne("echo bye; exit 3");
    while (!String((await processes({ action: "list" })).output).includes("exit code 3")) await sleep(20);
    expect((await processes({ action: "output", id: quick })).output).toMatch(/exit code 3.*\nbye$/s);
  });

  test("label the turn where they have a network: what they fetch is read from files", async () => {
    const labels = await Promise.all(
      ["main", "web", "open"].map(async (agent) => (await run({ command: "true", background: true }, { agent })).labels),
    );
    expect(labels).toEqual([undefined, ["external"], ["external"]]);
  });

  test("are nobody else's: not another agent's, not another chat's", async () => {
    const id = await startOne("sleep 60");
    for (const action of ["output", "end"])
      await expect(processes({ action, id }, { agent: "other" })).rejects.toMatchObject({ code: "request.not_found" });
    expect((await processes({ action: "list" }, { agent: "other" })).output).toBe("No programs in the background.");
    const first: CalledFrom = { agent: "chats", address: { chat: "1" } };
    const inChat = await startOne("sleep 60", first);
    await expect(processes({ action: "end", id: inChat }, { agent: "chats", address: { chat: "2" } })).rejects.toMatchObject({
      code: "request.not_found",
    });
    await processes({ action: "end", id: inChat }, first);
    await processes({ action: "end", id });
  });

  test("are bounded, also when many are started at once; of those that ended the newest are known", async () => {
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => startOne("sleep 60")));
    const started = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    expect(started).toHaveLength(3);
    expect(results.find((result) => result.status === "rejected")?.reason).toMatchObject({ code: "request.busy" });
    // Another agent has its own.
    const others = await startOne("sleep 60", { agent: "other" });
    await background.endOf((agent) => agent === "main");
    expect((await processes({ action: "list" })).output).not.toContain("running");
    expect(String((await processes({ action: "list" })).output).split("\n")).toHaveLength(2);
    expect((await processes({ action: "list" }, { agent: "other" })).output).toContain(`${others}  running`);
    await background.endOf(() => true);
  });
});

test("the process tool wants an id", async () => {
  await expect(caller.call("process", { action: "end" })).rejects.toMatchObject({ code: "tool.bad_arguments" });
  expect(process_.effect).toBe("keyed");
  expect(terminal.effect).toBe("unsafe");
});
