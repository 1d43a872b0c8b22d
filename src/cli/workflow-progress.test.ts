import { stripVTControlCharacters } from "node:util";
import { expect, test, vi } from "vitest";
import type { RunStepView, WorkflowRun } from "../contract/workflows.ts";
import { progressOn } from "./workflow-progress.ts";

const step = (id: string, more: Partial<RunStepView> = {}): RunStepView => ({
  id,
  needs: [],
  agent: "coder",
  status: "waiting",
  attempts: 0,
  startedAt: null,
  endedAt: null,
  error: null,
  task: null,
  run: null,
  ...more,
});
const runOf = (...steps: RunStepView[]): WorkflowRun => ({
  id: "1m7gjt1kzhr7gac5ryrb",
  name: "big",
  status: "running",
  steps,
  outputs: {},
  usage: null,
  relay: null,
  error: null,
  input: {},
  pool: null,
  from: "operator",
  paused: false,
  rerunOf: null,
  createdAt: 0,
  endedAt: null,
});

function screen(isTTY: boolean, rows = 24) {
  const written: string[] = [];
  return { isTTY, columns: 80, rows, written, write: (text: string) => written.push(text) };
}

const NOW = 5_000;
const call = { tool: "context_read", args: '{"key":"api_findings"}', state: "intended" as const, since: 0 };

test("at a terminal the tree is drawn again in its place, with what each step does now, and no line is longer than the terminal", () => {
  const at = screen(true);
  const progress = progressOn(at, () => NOW);
  const long = "x".repeat(300);
  progress.see(runOf(step("a", { status: "running", startedAt: 2_000, attempts: 2, calls: [call] }), step("b", { needs: ["a"] })));
  progress.pause();
  progress.goOn();
  progress.see(runOf(step("a", { status: "failed", startedAt: 2_000, endedAt: 4_000, error: { code: "x", message: long } }), step("b")));
  progress.end();
  const plain = at.written.map((text) => stripVTControlCharacters(text));
  expect(plain[0]).toContain("▶ a  coder     3 s  context_read api_findings, try 2");
  expect(plain[0]).toContain("· b  coder          after a");
  expect(plain.join("")).toContain("✘ a");
  for (const line of plain.join("\n").split("\n")) expect(line.replace("\r", "").length).toBeLessThanOrEqual(80);
});

test("what changes later replaces what was drawn", () => {
  vi.useFakeTimers();
  try {
    const at = screen(true);
    const progress = progressOn(at, () => NOW);
    for (const status of ["ready", "running"] as const) {
      progress.see(runOf(step("a", { status })));
      vi.advanceTimersByTime(100);
    }
    progress.end();
    expect(at.written[0]).not.toContain("\x1b[2A");
    // A head and one step.
    expect(at.written[1]?.startsWith("\x1b[2A\r\x1b[J")).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

test("more steps than the terminal has lines: those that matter are shown, the others counted", () => {
  const at = screen(true, 10);
  const done = Array.from({ length: 40 }, (_, index) => step(`s${index}`, { status: "completed" }));
  const progress = progressOn(at, () => NOW);
  progress.see(runOf(...done, step("now", { status: "running" }), step("bad", { status: "failed" }), step("later")));
  progress.end();
  const lines = (at.written[0] ?? "").trimEnd().split("\n");
  expect(lines.length).toBeLessThan(10);
  expect(lines.join("\n")).toMatch(/▶.* now[\s\S]+✘.* bad[\s\S]+… 40 completed, 1 waiting/);
});

test("elsewhere it is one plain line for each change", () => {
  const at = screen(false);
  const progress = progressOn(at, () => NOW);
  const used = { calls: 1, inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, costUsd: 0.5, unpriced: 0 };
  const running = step("a", { status: "running", startedAt: 2_000 });
  progress.see(runOf(running, step("b")));
  progress.see(runOf({ ...running, calls: [call] }, step("b")));
  progress.see(runOf({ ...running, status: "completed", endedAt: 3_500, usage: used }, step("b", { status: "review" })));
  progress.end();
  expect(at.written).toEqual([
    "  ▶ a  coder: runs\n",
    "  ✔ a  coder: completed 2 s, 15 tokens, $0.5\n",
    "  ? b  coder: waits for a person's word\n",
  ]);
});
