import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { serve } from "../child.ts";
import { countFsyncs } from "../fsync-shim.ts";
import { type StepsResult, type StepsTask, timeRuns } from "../workflows/steps-task.ts";
import { loadPeer } from "./load.ts";

export interface PeerStepsTask extends StepsTask {
  readonly peer: "langgraph" | "mastra";
}

interface Graph {
  invoke(input: unknown, config: unknown): Promise<{ readonly said: readonly string[] }>;
}
interface Builder {
  addNode(name: string, node: () => unknown): Builder;
  addEdge(from: string | readonly string[], to: string): Builder;
  compile(options: unknown): Graph;
}
interface LangGraph {
  readonly StateGraph: new (state: unknown) => Builder;
  readonly Annotation: { (options?: unknown): unknown; Root(fields: Readonly<Record<string, unknown>>): unknown };
  readonly START: string;
  readonly END: string;
}
interface Saver {
  readonly db: { pragma(text: string): unknown; prepare(sql: string): { get(...values: unknown[]): { count: number } } };
}

interface Workflow {
  then(step: unknown): Workflow;
  parallel(steps: readonly unknown[]): Workflow;
  commit(): Workflow;
  createRun(options: { runId: string }): Promise<{ start(input: unknown): Promise<{ status: string; error?: Error }> }>;
  getWorkflowRunById(id: string): Promise<{ steps?: Record<string, unknown> } | null>;
}

await serve<PeerStepsTask, StepsResult>(async (task) => {
  const folder = mkdtempSync(join(task.folder, `${task.peer}-`));
  try {
    const run = task.peer === "langgraph" ? await langGraph(task, folder) : await mastra(task, folder);
    return await timeRuns(task, run, countFsyncs);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

function nameOf(index: number): string {
  return `step${index}`;
}

/** Each step returns a few words, which its checkpointer keeps before the next begins (durability "sync"). */
async function langGraph({ shape, steps, synced }: StepsTask, folder: string): Promise<(name: string) => Promise<void>> {
  const { StateGraph, Annotation, START, END } = await loadPeer<LangGraph>("@langchain/langgraph");
  const { SqliteSaver } = await loadPeer<{ SqliteSaver: { fromConnString(file: string): Saver } }>(
    "@langchain/langgraph-checkpoint-sqlite",
  );
  const checkpointer = SqliteSaver.fromConnString(join(folder, "langgraph.db"));
  // Its first use makes the tables and sets its own pragmas.
  let isSet = false;
  // Of a chain each step sees what the one before has said; what runs side by side is gathered by a reducer.
  const said =
    shape === "chain"
      ? Annotation({ reducer: (_: string[], right: string[]) => right, default: () => [] })
      : Annotation({ reducer: (left: string[], right: string[]) => left.concat(right), default: () => [] });
  const builder = new StateGraph(Annotation.Root({ said }));
  for (let index = 0; index < steps; index++) {
    builder.addNode(nameOf(index), () => ({ said: [`done by ${nameOf(index)}`] }));
    builder.addEdge(shape === "fan" || index === 0 ? START : nameOf(index - 1), nameOf(index));
    if (shape === "fan" || index === steps - 1) builder.addEdge(nameOf(index), END);
  }
  const graph = builder.compile({ checkpointer });
  return async (name) => {
    const config = { configurable: { thread_id: name }, recursionLimit: steps + 10, durability: "sync" };
    const result = await graph.invoke({ said: [] }, config);
    if (!isSet) checkpointer.db.pragma(`synchronous = ${synced ? "full" : "normal"}`);
    isSet = true;
    const wanted = shape === "chain" ? 1 : steps;
    if (result.said.length !== wanted) throw new Error(`LangGraph ended with ${JSON.stringify(result)}`);
  };
}

async function mastra({ shape, steps, synced }: StepsTask, folder: string): Promise<(name: string) => Promise<void>> {
  const { Mastra } = await loadPeer<{ Mastra: new (options: unknown) => { getWorkflow(name: string): Workflow } }>("@mastra/core");
  const { createStep, createWorkflow } = await loadPeer<{
    createStep(step: unknown): unknown;
    createWorkflow(workflow: unknown): Workflow;
  }>("@mastra/core/workflows");
  const { LibSQLStore } = await loadPeer<{
    LibSQLStore: new (options: unknown) => { init(): Promise<void>; client: { execute(sql: string): Promise<unknown> } };
  }>("@mastra/libsql");
  const { z } = await loadPeer<{ z: { object(fields: unknown): unknown; any(): unknown } }>("zod");
  const storage = new LibSQLStore({ id: "bench", url: `file:${join(folder, "mastra.db")}` });
  await storage.init();
  await storage.client.execute(`PRAGMA synchronous = ${synced ? "full" : "normal"}`);
  const all = Array.from({ length: steps }, (_, index) =>
    createStep({
      id: nameOf(index),
      inputSchema: z.any(),
      outputSchema: z.any(),
      execute: async () => ({ said: `done by ${nameOf(index)}` }),
    }),
  );
  const begun = createWorkflow({ id: "bench", inputSchema: z.object({}), outputSchema: z.any() });
  const built = shape === "chain" ? all.reduce<Workflow>((workflow, step) => workflow.then(step), begun) : begun.parallel(all);
  const workflow = new Mastra({ storage, workflows: { bench: built.commit() }, logger: false }).getWorkflow("bench");
  return async (name) => {
    const run = await workflow.createRun({ runId: name });
    const { status, error } = await run.start({ inputData: {} });
    if (status !== "success") throw error ?? new Error(`Mastra ended with ${status}`);
  };
}
