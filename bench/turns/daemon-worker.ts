import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import type { Model } from "../../src/kernel/model.ts";
import { serve, startChild } from "../child.ts";
import type { LoadResult, LoadTask } from "./load-worker.ts";

export interface DaemonTask {
  readonly folder: string;
  /** `store:` of the config; null: the home's own file. */
  readonly store: string | null;
  readonly agents: number;
  readonly phases: readonly (Omit<LoadTask, "url" | "token" | "agents"> & { readonly tool: boolean })[];
}

export interface PhaseResult {
  readonly load: LoadResult;
  /** From the commit of the message to the commit of the reply, less the time in the model; ms. Of phases with one message at a time only. */
  readonly overhead: { readonly p50: number; readonly p99: number } | null;
  /** Delay of the daemon's event loop beyond what its timer asks for, ms. */
  readonly loop: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Of the daemon's process for each turn, ms. */
  readonly cpuPerTurn: number;
}

const RESOLUTION_MS = 1;
const look = defineTool({
  name: "bench_look",
  description: "Looks something up.",
  parameters: z.object({ what: z.string() }),
  effect: "pure",
  run: () => ({ output: "found" }),
});

await serve<DaemonTask, PhaseResult[]>(async (task) => {
  const home = mkdtempSync(join(task.folder, "home-"));
  const agents = Array.from({ length: task.agents }, (_, index) => `a${index}: {}`).join(", ");
  writeFileSync(
    join(home, "guildhall.yaml"),
    `model: bench/instant\ntools: { allow: [bench_look] }\nagents: { main: {}, ${agents} }\n${task.store ? `store: ${task.store}\n` : ""}`,
  );
  let tool = false;
  let inModel = 0;
  const model: Model = {
    name: "bench/instant",
    scripted: true,
    price: { input: 0, output: 0 },
    async *stream({ messages }) {
      const begun = performance.now();
      const isDone = !tool || messages.at(-1)?.role === "tool";
      if (isDone) yield { kind: "text", text: "The answer is short." };
      else yield { kind: "call", call: { id: "1", tool: look.name, args: '{"what":"it"}' } };
      yield { kind: "usage", usage: { inputTokens: 10, outputTokens: 5 } };
      inModel += performance.now() - begun;
    },
  };
  const overheads = createHistogram();
  let admittedAt = 0;
  const reached = (point: CrashPoint): void => {
    if (point === "message.admitted") [admittedAt, inModel] = [performance.now(), 0];
    if (point === "turn.committed") overheads.record(Math.max(1, Math.round(1e6 * (performance.now() - admittedAt - inModel))));
  };
  const provider = { name: "bench", model: () => model, models: () => ["instant"] };
  const daemon = await startDaemon({ home, port: 0, logLevel: "error", providers: [provider], tools: [look], reached });
  const results: PhaseResult[] = [];
  const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  try {
    for (const { tool: withTool, ...phase } of task.phases) {
      tool = withTool;
      const started = startChild<LoadResult>("turns/load-worker.ts", {
        ...phase,
        url: daemon.url,
        token: daemon.operatorToken,
        agents: task.agents,
      });
      await started.ready;
      overheads.reset();
      loop.reset();
      loop.enable();
      const before = process.cpuUsage();
      started.go();
      const load = await started.result;
      const cpu = process.cpuUsage(before);
      loop.disable();
      const delay = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
      results.push({
        load,
        overhead: phase.sessions === 1 ? { p50: overheads.percentile(50) / 1e6, p99: overheads.percentile(99) / 1e6 } : null,
        loop: { p50: delay(loop.percentile(50)), p99: delay(loop.percentile(99)), max: delay(loop.max) },
        cpuPerTurn: (cpu.user + cpu.system) / 1e3 / load.turns,
      });
    }
  } finally {
    await daemon.stop();
    rmSync(home, { recursive: true, force: true });
  }
  return results;
});
