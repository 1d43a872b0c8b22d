import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../../src/client/api-client.ts";
import { startedWorkflow, workflowRun } from "../../src/contract/workflows.ts";
import { startDaemon } from "../../src/daemon/daemon.ts";
import { serve } from "../child.ts";
import { factsIn, factsOf, SCENES, type Scene, type SceneStep } from "./scenes.ts";
import { type Arm, goalOf, keyOf, ordersTo, POOL, scriptedModel } from "./scripted-model.ts";

export interface RelayTask {
  readonly folder: string;
  readonly arms: readonly Arm[];
}

/** What one workflow came to in one arm, as the gateway has recorded it. */
export interface RelayResult {
  readonly scene: number;
  readonly arm: Arm;
  readonly input: number;
  readonly output: number;
  readonly calls: number;
  readonly facts: number;
  readonly planted: number;
  /** Of declared reads: what the meter of the run says. */
  readonly meter: { readonly throughMemory: number; readonly throughParent: number } | null;
}

const LARGEST = 1_000_000;
const WAIT_MS = 50;

await serve<RelayTask, RelayResult[]>(async ({ folder, arms }) => {
  const home = mkdtempSync(join(folder, "home-"));
  const keys = SCENES.flatMap(({ steps }, scene) =>
    steps.map(({ id }) => [keyOf(scene, id), { max_bytes: LARGEST, policy: "last_write" }]),
  );
  const config = {
    model: scriptedModel.name,
    tools: { allow: ["delegate_task", "context_read", "context_write"] },
    agents: { main: { default: true, subagents: { max_children: 10 } } },
    pools: { [POOL]: { readers: ["*"], writers: ["*"], keys: Object.fromEntries(keys) } },
  };
  writeFileSync(join(home, "guildhall.yaml"), JSON.stringify(config));
  const provider = { name: "bench", model: () => scriptedModel, models: () => ["relay"] };
  const daemon = await startDaemon({ home, port: 0, logLevel: "error", providers: [provider] });
  const api = new ApiClient(daemon.url, daemon.operatorToken);
  const database = new DatabaseSync(join(home, "state.db"), { readOnly: true });
  const spent = (): { input: number; output: number; calls: number } =>
    database
      .prepare(
        "select coalesce(sum(input_tokens), 0) as input, coalesce(sum(output_tokens), 0) as output, coalesce(sum(calls), 0) as calls from model_calls",
      )
      .get() as never;
  const newestTask = (): string => String(database.prepare("select max(id) as id from tasks").get()?.id ?? "");
  const lastResult = (since: string, scene: number, step: SceneStep): string => {
    const row = database
      .prepare("select result from tasks where id > ? and goal = ? and status = 'completed' order by id desc limit 1")
      .get(since, goalOf(scene, step));
    return String(row?.result ?? "");
  };
  const results: RelayResult[] = [];
  try {
    for (const [scene, { steps }] of SCENES.entries())
      for (const arm of arms) {
        const before = spent();
        const since = newestTask();
        const meter =
          arm === "declared" || arm === "everything"
            ? await byWorkflow(api, scene, SCENES[scene] as Scene, arm)
            : await byParent(api, scene, arm);
        const after = spent();
        const last = steps.at(-1) as SceneStep;
        const planted = steps.filter(({ id }) => last.reads.includes(id)).flatMap((step) => factsOf(scene, step));
        const known = new Set(factsIn(lastResult(since, scene, last)));
        results.push({
          scene,
          arm,
          input: after.input - before.input,
          output: after.output - before.output,
          calls: after.calls - before.calls,
          facts: planted.filter((fact) => known.has(fact)).length,
          planted: planted.length,
          meter,
        });
      }
  } finally {
    database.close();
    await daemon.stop();
    rmSync(home, { recursive: true, force: true });
  }
  return results;
});

/** An agent delegates each step, and passes on what its arm says. */
async function byParent(api: ApiClient, scene: number, arm: Arm): Promise<null> {
  const { runId } = await api.send({
    id: `${scene} ${arm}`,
    platform: "bench",
    chat: `${scene} ${arm}`,
    peer: `${scene} ${arm}`,
    chat_type: "dm",
    text: ordersTo(scene, arm),
  });
  for await (const event of api.follow(runId))
    if (event.kind === "done" && event.run.status !== "completed") throw new Error(`${scene} ${arm}: ${JSON.stringify(event.run.error)}`);
  return null;
}

/** The same steps as a workflow, each with what it needs as its declared reads, or with everything that comes before it. */
async function byWorkflow(api: ApiClient, scene: number, { steps }: Scene, arm: Arm): Promise<RelayResult["meter"]> {
  const key = (id: string): string => keyOf(scene, id);
  const workflow = {
    name: `scene-${scene}`,
    keys: Object.fromEntries(steps.map(({ id }) => [key(id), { max_bytes: LARGEST }])),
    steps: steps.map((step) => ({
      id: step.id,
      agent: "main",
      needs: [...step.reads],
      reads: (arm === "everything" ? before(steps, step) : step.reads).map(key),
      writes: [key(step.id)],
      goal: goalOf(scene, step),
    })),
    outputs: [key((steps.at(-1) as SceneStep).id)],
  };
  const { id } = await api.post(startedWorkflow, "/api/workflows/runs", { workflow, input: {} });
  while (true) {
    const run = await api.get(workflowRun, `/api/workflows/runs/${id}`);
    if (run.status === "completed") return run.relay && { throughMemory: run.relay.throughMemory, throughParent: run.relay.throughParent };
    if (run.status !== "running") throw new Error(`${scene}: ${JSON.stringify(run)}`);
    await sleep(WAIT_MS);
  }
}

/** Every step that must be over when this one starts. */
function before(steps: readonly SceneStep[], { reads }: SceneStep): string[] {
  return [...new Set(reads.flatMap((id) => [...before(steps, steps.find((step) => step.id === id) as SceneStep), id]))];
}
