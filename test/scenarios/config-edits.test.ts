import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { parse } from "yaml";
import { untilApplied } from "../../src/cli/config-applied.ts";
import { Home } from "./guildhall.ts";

const WORKER = new URL("./config-edit-worker.ts", import.meta.url).pathname;
const TEXT = "# ours\nagents:\n  main: {default: true}   # the first\n\n# the end\n";

const homes: Home[] = [];
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    const gone = child.exitCode !== null || child.signalCode !== null ? undefined : new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }
  for (const home of homes.splice(0)) await home.remove();
});
function homeWith(text?: string): Home {
  const home = new Home(text);
  homes.push(home);
  return home;
}
const textOf = (home: Home): string => readFileSync(join(home.path, "guildhall.yaml"), "utf8");
const agentsOf = (home: Home): string[] => Object.keys((parse(textOf(home)) as { agents: object }).agents);

test("two agents added at once, by two commands, are both there, and so is every comment", async () => {
  const home = homeWith(TEXT);
  const ended = await Promise.all(["a", "b"].map((id) => home.run(["agents", "add", id, "--tools", "coding", "--json"])));
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  expect(agentsOf(home).toSorted()).toEqual(["a", "b", "main"]);
  for (const line of TEXT.split("\n")) expect(textOf(home).split("\n")).toContain(line);
});

/** Adds agents without end: `config-edit-worker.ts HOME NAME`, and says each that is there for good. */
function editor(home: Home, name: string): { child: ChildProcess; said: Set<string> } {
  const child = spawn(process.execPath, [WORKER, home.path, name], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const said = new Set<string>();
  child.stdout.on("data", (data: Buffer) => {
    for (const id of data.toString().split("\n")) if (id !== "") said.add(id);
  });
  return { child, said };
}

test("eight edit at once and some are killed: the file is always whole, and nothing that was said to be in it is lost", async () => {
  const home = homeWith(TEXT);
  const editors = Array.from({ length: 8 }, (_, index) => editor(home, `w${index}`));
  const gone = editors.map(({ child }) => new Promise((resolve) => child.once("close", resolve)));
  for (let round = 0; editors.reduce((sum, { said }) => sum + said.size, 0) < 60; round++) {
    await sleep(20 + ((round * 37) % 60));
    expect(parse(textOf(home))).toHaveProperty("agents.main");
    // Half of them, one after the other, in the middle of whatever they do.
    if (round % 8 === 7 && round < 32) editors[Math.floor(round / 8)]?.child.kill("SIGKILL");
    if (editors.some(({ child }) => child.exitCode !== null)) throw new Error("an editor ended by itself");
  }
  for (const { child } of editors) child.kill("SIGKILL");
  await Promise.all(gone);
  const there = agentsOf(home);
  for (const { said } of editors) for (const id of said) expect(there).toContain(id);
  for (const line of TEXT.split("\n")) expect(textOf(home).split("\n")).toContain(line);
  // Whatever the dead have left behind is in nobody's way.
  expect((await home.run(["agents", "add", "last"])).code).toBe(0);
  expect((await home.run(["config", "check"])).code).toBe(0);
  const strange = readdirSync(home.path).filter(
    (name) => !/^(guildhall\.yaml(\.bak-[0-9a-f]{12})?|\.guildhall\.yaml\.lock|agents)$/.test(name),
  );
  expect(strange).toEqual([]);
});

test("from an empty home: init, an agent, and what is known about both", async () => {
  const home = homeWith();
  expect((await home.run(["init", "--yes"])).code).toBe(0);
  const made = textOf(home);
  expect(made).toMatch(/^# yaml-language-server: \$schema=\.\/guildhall\.schema\.json\n/);
  const again = await home.run(["init", "--yes", "--json"]);
  expect(JSON.parse(again.stdout)).toMatchObject({ made: [], agent: "main" });
  expect(textOf(home)).toBe(made);
  expect((await home.run(["agents", "add", "coder", "--tools", "coding", "--bind", "telegram:-100:42"])).code).toBe(0);
  const route = await home.run([
    "route",
    "explain",
    "--platform",
    "telegram",
    "--chat",
    "1",
    "--chat-type",
    "dm",
    "--peer",
    "u1",
    "--json",
  ]);
  expect(JSON.parse(route.stdout)).toMatchObject({ agent: "main", tier: "default" });
  const can = await home.run(["can", "coder", "terminal", "--json"]);
  expect(JSON.parse(can.stdout)).toMatchObject({ verdict: "allow" });
  const show = JSON.parse((await home.run(["agents", "show", "coder", "--json"])).stdout);
  expect(show.values).toContainEqual({
    key: "tools",
    value: [expect.objectContaining({ profile: "coding" })],
    from: "own",
    line: expect.any(Number),
  });
  expect(show.bindings).toMatchObject([{ platform: "telegram", chat: "-100" }]);
  expect((await home.run(["config", "check"])).code).toBe(0);
});

test.each([
  [["agents", "add", "main"], 1, 'there is an agent "main" already'],
  [["agents", "add", "Coder"], 2, '"Coder" cannot be an agent\'s id'],
  [["agents", "add", "../x"], 2, "cannot be an agent's id"],
  [["agents", "add", "cоder"], 2, "cannot be an agent's id"],
  [["agents", "add", "x", "--model", "gpt"], 2, "expected <provider>/<model>"],
  [["agents", "add", "x", "--bind", "telegram"], 2, "Expected <platform>:<chat>"],
  [["agents", "add", "constructor"], 2, "this name is reserved"],
  [["agents", "show", "Odd"], 2, 'there is no agent "Odd"'],
  [["agents", "pause", "mian"], 2, 'there is no agent "mian" (did you mean "main"?)'],
])("%j is refused with exit %d, and nothing is written", async (args, code, words) => {
  const home = homeWith(TEXT);
  const ended = await home.run(args);
  expect(ended.stderr).toContain(words);
  expect(ended.code).toBe(code);
  expect(textOf(home)).toBe(TEXT);
});

test("an agent whose section is broken is said to be quarantined, whatever is asked of it; one whose id is none is told why", async () => {
  const home = homeWith("agents:\n  main: {}\n  coder: { modle: x }\n  Odd: {}\n");
  const paused = await home.run(["agents", "pause", "coder"]);
  expect(paused.stdout).toBe("coder is quarantined\n");
  expect(paused.stderr).toMatch(/it will be paused once this is corrected: .*guildhall\.yaml:3:12: agents\.coder\.modle: unknown key/);
  const resumed = JSON.parse((await home.run(["agents", "resume", "coder", "--json"])).stdout);
  expect(resumed).toMatchObject({ id: "coder", state: "quarantined", changed: true });
  expect(await home.run(["agents", "show", "Odd"])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/:4:3: .*\n {2}Write odd instead/),
  });
});

test("an empty list of tools is shown as what it is: nothing", async () => {
  const home = homeWith("agents: { main: { tools: [] } }\n");
  expect((await home.run(["agents", "show", "main"])).stdout).toMatch(/^tools +nothing +its own, line 1$/m);
});

test("a change is taken up also when another one came before the daemon has looked", async () => {
  const home = homeWith(TEXT);
  await home.start();
  const ours = { hash: "of a text that was in the file for a moment", file: join(home.path, "guildhall.yaml") };
  expect(await untilApplied({ home: home.path }, ours)).toEqual({ daemon: "applied", revision: 1 });
});

test("an agent that comes back is told that there was one before", async () => {
  const home = homeWith(TEXT);
  expect(JSON.parse((await home.run(["agents", "add", "a", "--json"])).stdout)).toMatchObject({ returned: false });
  writeFileSync(join(home.path, "guildhall.yaml"), TEXT);
  const again = await home.run(["agents", "add", "a"]);
  expect(again.stderr).toContain("there was an agent a before: its files, conversations and tokens are this one's");
});
