import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { commitTurn } from "../../src/acts/commit-turn.ts";
import type { TaskParts } from "../../src/acts/tasks/task-parts.ts";
import { TurnJournal } from "../../src/acts/turn-journal.ts";
import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import { startWorkflowIn } from "../../src/acts/workflows/start-workflow.ts";
import { configSchema } from "../../src/contract/config.ts";
import { workflow } from "../../src/contract/workflows.ts";
import { Dispatcher, type Handler } from "../../src/drivers/dispatch/dispatcher.ts";
import { takeTurn } from "../../src/drivers/dispatch/take-turn.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { idSource } from "../../src/kernel/ids.ts";
import type { Model } from "../../src/kernel/model.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Approvals } from "../../src/records/access/approvals.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { type RunInput, readRunInput } from "../../src/records/sessions/runs.ts";
import { indexTasks } from "../../src/records/tasks/task-index.ts";
import { KnownWorkflows } from "../../src/records/workflows/known-workflows.ts";
import { openStore } from "../../src/store/store.ts";
import { quiet, turnParts } from "../../test/turn-parts.ts";
import { serve } from "../child.ts";
import { countFsyncs } from "../fsync-shim.ts";
import { Ends } from "./ends.ts";
import { type StepsResult, type StepsTask, timeRuns } from "./steps-task.ts";

/** `turns`: each step is a whole turn of an agent, with a model that answers at once. Else its answer is given, and the engine does the rest. */
export type OwnStepsTask = StepsTask & { readonly turns: boolean };

const newId = idSource(systemClock, systemRandom);
const AT_ONCE = 64;

await serve<OwnStepsTask, StepsResult>(async (task) => {
  const folder = mkdtempSync(join(task.folder, "guildhall-"));
  const store = await openStore(`sqlite:${join(folder, "state.db")}`);
  const agents = new AgentRegistry(revisionWithoutFile(configSchema.parse({ model: "bench/instant", agents: { main: {} } })));
  const parts: TaskParts = { store, newId, agents, pools: new Pools(store), workflows: new KnownWorkflows(), delivers: () => false };
  const handler = task.turns ? wholeTurns(parts, agents, folder) : engineAlone(parts);
  const dispatcher = new Dispatcher({
    queue: store.queue,
    owner: "bench",
    handlers: { [TURN_WORK]: handler },
    log: quiet,
    limit: () => AT_ONCE,
    leaseMs: 60_000,
  });
  dispatcher.start();
  const ends = new Ends(store);
  // What makes tasks findable runs beside it, as it does in a daemon.
  const indexing = setInterval(() => void indexTasks(store).catch(() => {}), 1_000);
  try {
    return await timeRuns(task, (name) => run(parts, ends, task, name), countFsyncs);
  } finally {
    clearInterval(indexing);
    await dispatcher.stop(1_000);
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

async function run(parts: TaskParts, ends: Ends, { shape, steps }: StepsTask, name: string): Promise<void> {
  const definition = workflow.parse({
    name: `bench-${shape}`,
    steps: Array.from({ length: steps }, (_, index) => ({
      id: `step${index}`,
      goal: "Say a few words",
      needs: shape === "chain" && index > 0 ? [`step${index - 1}`] : [],
    })),
  });
  const start = { definition, input: { name }, from: "operator", granted: null, callerAgent: null };
  const { store } = parts;
  const id = await store.transact("start workflow", (tx) => startWorkflowIn(parts, tx, start), "locked");
  await ends.of(id);
  const done = await store.read.get<{ count: number }>`select count(*) as count from workflow_steps
    where workflow_id = ${id} and state = 'completed'`;
  if (done?.count !== steps) throw new Error(`${done?.count} of ${steps} steps are completed`);
}

/** What becomes of a step's answer, without the turn that makes it. */
function engineAlone(parts: TaskParts): Handler {
  const approvals = new Approvals(parts.store, newId);
  return async (item) => {
    const { runId, causedBy } = item.payload as TurnPayload;
    const input = (await readRunInput(parts.store.read, runId)) as RunInput;
    const journal = new TurnJournal({ store: parts.store, approvals, reached: noCrashPoints }, item, input, causedBy);
    const outcome = { text: `done by ${input.id}`, steps: [], last: null, calls: [] };
    await commitTurn({ ...parts, delivers: () => false, reached: noCrashPoints, journal }, item, input, outcome, causedBy);
  };
}

function wholeTurns(parts: TaskParts, agents: AgentRegistry, home: string): Handler {
  const model: Model = {
    name: "bench/instant",
    scripted: true,
    price: { input: 0, output: 0 },
    async *stream() {
      yield { kind: "text", text: "done" };
      yield { kind: "usage", usage: { inputTokens: 10, outputTokens: 5 } };
    },
  };
  const models = modelRegistry([{ name: "bench", model: () => model, models: () => [] }]);
  return takeTurn({ ...turnParts(parts.store, newId, home), ...parts, agents, models });
}
