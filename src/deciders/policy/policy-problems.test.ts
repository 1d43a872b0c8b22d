import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadSettings } from "../../settings/load-settings.ts";
import { policyProblems } from "./policy-problems.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-policy-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function problemsOf(yaml: string): string[] {
  writeFileSync(join(home, "guildhall.yaml"), yaml);
  return policyProblems(loadSettings({ home }, {})).map(
    ({ line, severity, code, path, message }) => `${line} ${severity} ${code} ${path}: ${message}`,
  );
}

test("rules that do something are no problem", () => {
  expect(
    problemsOf(`tools: { deny: [image_generate] }
agents:
  main: {}
  coder: { tools: { profile: coding, deny: [terminal], ask: [group:fs, file_*] } }
  server: { mcp: { files: { command: x } }, tools: { allow: ["mcp__files__*"], deny: [mcp__files__write], ask: ["mcp__*"] } }
  one: { mcp: { files: { command: x } }, tools: [mcp__files__read] }
  added: { tools: { profile: minimal, also_allow: [group:web], deny: [web_search] } }
`),
  ).toEqual([]);
});

test("an agent that may call nothing", () => {
  expect(
    problemsOf(`tools: { deny: [todo, clarify] }
agents:
  main: {}
  mute: { tools: [] }
  shut:
    tools: { deny: ["*"] }
  crossed: { tools: { profile: minimal, allow: [terminal] } }
  global: { tools: minimal }
`),
  ).toEqual([
    "4 warning policy.no_tools agents.mute.tools: agent mute may call no tool at all",
    "6 warning policy.no_tools agents.shut.tools: agent shut may call no tool at all",
    "7 warning policy.no_tools agents.crossed.tools: agent crossed may call no tool at all",
    "8 warning policy.no_tools agents.global.tools: agent global may call no tool at all",
  ]);
});

test("entries of deny and ask that change nothing", () => {
  expect(
    problemsOf(`agents:
  main:
    tools:
      profile: messaging
      deny:
        - terminal
        - web_fetch
        - group:fs
      ask:
        - process
        - message_send
`),
  ).toEqual([
    "6 warning policy.idle_deny agents.main.tools.deny.0: terminal is not allowed anyway",
    "8 warning policy.idle_deny agents.main.tools.deny.2: group:fs is not allowed anyway",
    "10 warning policy.idle_ask agents.main.tools.ask.0: process is not allowed, and `ask` does not allow it",
  ]);
});

test("ask that deny overrides, the agent's own or everybody's", () => {
  expect(
    problemsOf(`tools: { deny: [schedule] }
agents:
  main:
    tools:
      deny: [group:runtime]
      ask: [terminal, group:fs, schedule]
`),
  ).toEqual([
    "6 warning policy.ask_denied agents.main.tools.ask.0: terminal is denied by agents.main.tools.deny: nobody will be asked",
    "6 warning policy.ask_denied agents.main.tools.ask.2: schedule is denied by tools.deny: nobody will be asked",
  ]);
});

test("also_allow that a global deny cancels", () => {
  expect(
    problemsOf(`tools:
  deny:
    - group:runtime
agents:
  main:
    tools: { profile: minimal, also_allow: [web_fetch, terminal] }
`),
  ).toEqual([
    "6 warning policy.cancelled_allow agents.main.tools.also_allow.1: terminal stays denied: a global deny always holds, and tools.deny has group:runtime (line 3)",
  ]);
});
