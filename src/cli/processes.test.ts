import { expect, test } from "vitest";
import { agentAmong, ancestors, nameOfProcess, onlyStarts } from "./processes.ts";

test.each([
  [["sh", "-c", "guildhall mcp"], true],
  [["/bin/bash", "-lc", "npx guildhall mcp"], true],
  [["npm exec guildhall mcp"], true],
  [["node", "/usr/lib/node_modules/npm/bin/npx-cli.js", "-y", "guildhall", "mcp"], true],
  [["node", "/usr/local/bin/guildhall", "mcp"], true],
  [["/usr/bin/node", "/x/bin/guildhall.js", "mcp"], true],
  [["-bash"], false],
  [["zsh"], false],
  [["claude"], false],
  [["node", "/usr/local/bin/claude", "--mcp-config", "guildhall"], false],
  [["/usr/bin/codex", "exec"], false],
  [["tmux"], false],
])("%j only starts another program: %s", (args, expected) => {
  expect(onlyStarts(args)).toBe(expected);
});

test("the agent is the nearest program that does more than start us", () => {
  const one = (pid: number, ...args: string[]) => ({ pid, parent: pid - 1, started: "1", args });
  expect(agentAmong([one(4, "sh", "-c", "x"), one(3, "npm exec x"), one(2, "claude"), one(1, "zsh")])?.pid).toBe(2);
});

test.skipIf(process.platform === "win32")("the processes above this one are known by id and start", () => {
  const [parent] = ancestors();
  expect(parent?.pid).toBe(process.ppid);
  expect(nameOfProcess(parent as NonNullable<typeof parent>)).toMatch(/^.+\/\d+\/.+$/);
});
