import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { Model } from "../../src/kernel/model.ts";
import { LAUNCHER } from "../launcher.ts";
import { Home } from "./guildhall.ts";

let home: Home;
beforeEach(() => {
  home = new Home("agents:\n  main: {}\n  coder: {personality: You write code.}\n  odd: {model: nobody/knows}\n");
});
afterEach(() => home.remove());

test("chat answers with a private daemon when none runs, and leaves none behind", async () => {
  const { code, stdout, stderr } = await home.run(["chat", "-m", "hello"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^Hello! .*scripted.*\n$/);
  expect(existsSync(join(home.path, "daemon.json"))).toBe(false);
});

test("chat talks to the daemon that runs, and to the agent it is told to", async () => {
  const daemon = await home.start();
  const { code, stdout } = await home.run(["chat", "--agent", "coder", "-m", "one two", "--json"]);
  const run = JSON.parse(stdout);
  expect([code, run.agent, run.decision.tier, run.status]).toEqual([0, "coder", "named", "completed"]);
  expect(await daemon.run(run.id)).toEqual(run);
});

test("chats that start at the same moment share one private daemon, and each gets its answer", async () => {
  const answers = await Promise.all(["one", "two", "three"].map((text) => home.run(["chat", "-m", text])));
  expect(answers.map(({ code, stderr }) => [code, stderr])).toEqual(answers.map(() => [0, ""]));
  for (const [index, text] of ["one", "two", "three"].entries()) expect(answers[index]?.stdout).toContain(`You said: "${text}"`);
});

test("chat whose daemon is stopping waits until it is gone, and is answered by its own", async () => {
  const { promise: over, resolve: letGo } = Promise.withResolvers<void>();
  const slow: Model = {
    name: "nobody/knows",
    scripted: true,
    price: { input: 0, output: 0 },
    async *stream() {
      await over;
      yield { kind: "text", text: "done" };
    },
  };
  const provider = { name: "nobody", model: () => slow, models: () => ["knows"] };
  const daemon = await startDaemon({ home: home.path, port: 0, logLevel: "error", providers: [provider] });
  const headers = { authorization: `Bearer ${daemon.operatorToken}` };
  const runs = async (): Promise<unknown> => (await fetch(`${daemon.url}/api/runs?agent=odd`, { headers })).json();
  const message = { id: "1", platform: "test", chat: "c", peer: "p", chat_type: "dm", agent: "odd", text: "hello" };
  await fetch(`${daemon.url}/api/messages`, { method: "POST", headers, body: JSON.stringify(message) });
  await expect.poll(runs).toMatchObject({ runs: [{ status: "running" }] });
  const chat = spawn(process.execPath, [LAUNCHER, "chat", "--home", home.path], { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: chat.stdout })[Symbol.asyncIterator]();
  chat.stdin.write("hello\n");
  expect((await answers.next()).value).toContain("Hello!");
  const stopped = daemon.stop();
  try {
    // The slow turn keeps it from being gone, and it is found no more.
    await expect.poll(() => existsSync(join(home.path, "daemon.json"))).toBe(false);
    chat.stdin.end("the sky is blue\n");
    await sleep(1_000);
    letGo();
    expect((await answers.next()).value).toContain("message 2 of our conversation");
  } finally {
    letGo();
    await stopped;
    chat.kill("SIGKILL");
  }
});

test("chat reads lines where there is no -m", async () => {
  const { code, stdout } = await home.run(["chat"], { input: "hello\n\nthe sky is blue\n" });
  expect(code).toBe(0);
  expect(stdout.trim().split("\n")).toEqual([expect.stringContaining("Hello!"), expect.stringContaining("message 2 of our conversation")]);
});

test.each([
  [["chat", "--agent", "codr", "-m", "x"], 2, 'there is no agent "codr" (did you mean "coder"?) [agent.unknown]\n  Name an agent'],
  [["chat", "--agent", "odd", "-m", "x"], 1, 'there is no provider "nobody" [model.unknown]\n  Name a model'],
  [["chat", "-m", " "], 2, "the message is empty [usage.wrong]\n  Run the command with --help"],
  [["backup", "b.gz"], 1, "to back up [store.missing]\n  Check --home"],
  [["restore", "/nothing.gz"], 2, "/nothing.gz is not a whole backup"],
  [["strat"], 2, "Did you mean start?"],
  [["start", "--port", "many"], 2, "A port is a number from 0 to 65535."],
  [["chat", "--colour"], 2, "unknown option '--colour'"],
])("%j exits %i and says what to do", async (args, exit, words) => {
  const { code, stdout, stderr } = await home.run(args);
  expect([code, stdout]).toEqual([exit, ""]);
  expect(stderr).toContain(words);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test("the version goes to stdout", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(await home.run(["--version"])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
});

test("help goes to stdout and is no error", async () => {
  const { code, stdout } = await home.run(["--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/start.*chat.*backup.*restore/s);
});

test("a backup moves a home to another place", async () => {
  await home.run(["chat", "-m", "hello"]);
  const file = join(home.path, "backup.gz");
  expect((await home.run(["backup", file])).stdout).toMatch(/backup\.gz: \d+ rows of \d+ tables\n/);
  const other = new Home();
  try {
    expect((await other.run(["restore", file])).code).toBe(0);
    expect((await other.run(["chat", "-m", "and again"])).stdout).toContain("message 2 of our conversation");
    expect(await other.run(["restore", file])).toMatchObject({ code: 2, stderr: expect.stringContaining("[backup.target_not_empty]") });
    expect(readdirSync(other.path).filter((name) => name.includes("restoring"))).toEqual([]);
  } finally {
    await other.remove();
  }
});
