import { contextTools } from "../../src/abilities/tools/context/context-tools.ts";
import type { TaskParts } from "../../src/acts/tasks/task-parts.ts";
import type { TurnPayload } from "../../src/acts/work-kinds.ts";
import { cancelWorkflowIn, pauseWorkflowIn, resumeWorkflowIn } from "../../src/acts/workflows/change-workflow.ts";
import { rerunWorkflowIn } from "../../src/acts/workflows/rerun-workflow.ts";
import { reviewStepIn } from "../../src/acts/workflows/review-step.ts";
import { startWorkflowIn, type WorkflowToStart } from "../../src/acts/workflows/start-workflow.ts";
import { type RerunPlan, type RunStepView, type WorkflowRun, workflow } from "../../src/contract/workflows.ts";
import type { ModelRequest } from "../../src/kernel/model.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { KnownWorkflows } from "../../src/records/workflows/known-workflows.ts";
import { readWorkflowRun } from "../../src/records/workflows/read-workflow-run.ts";
import type { Tx } from "../../src/store/engine.ts";
import type { Store } from "../../src/store/store.ts";
import { stepReads } from "../../src/turns/sources/step-reads.ts";
import { newId } from "./sessions-place.ts";
import { type Answer, TurningHouse } from "./turning-house.ts";

/** What a step's agent is asked: its goal, and the whole request. `count`: how often this goal was asked about. */
export type PlayStep = (goal: string, request: ModelRequest, count: number) => Answer | Promise<Answer>;

const AGENTS = { main: { model: "test/model" }, ada: { model: "test/model" }, ben: { model: "test/model" } };

/** A house where workflows run: the test plays the agents and takes their turns. Several on one place are several nodes. */
export class FlowingHouse extends TurningHouse {
  readonly pools: Pools;
  readonly workflows = new KnownWorkflows();
  /** By goal, in the order they were asked about. */
  readonly goals: string[] = [];
  playStep: PlayStep = (goal) => `done: ${goal}`;

  constructor(store: Store, config: object = {}) {
    super(store, { agents: AGENTS, ...config });
    this.pools = new Pools(store);
    this.tools = contextTools({ store, pools: this.pools });
    this.sources = { system: [], recalled: [stepReads(this.pools)] };
    this.parts = { pools: this.pools, workflows: this.workflows };
    this.play = (request) => {
      const goal = goalIn(request);
      this.goals.push(goal);
      return this.playStep(goal, request, this.goals.filter((one) => one === goal).length);
    };
  }

  get taskParts(): TaskParts {
    return { store: this.store, newId, delivers: () => false, agents: this.agents, pools: this.pools, workflows: this.workflows };
  }

  locked<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    return this.store.transact("test", body, "locked");
  }

  start(definition: object, more: Partial<WorkflowToStart> = {}): Promise<string> {
    const parsed = workflow.parse({ name: "test", ...definition });
    const started = { definition: parsed, input: {}, from: "operator", granted: null, callerAgent: null, ...more };
    return this.locked((tx) => startWorkflowIn(this.taskParts, tx, started));
  }

  cancel(id: string): Promise<string[]> {
    return this.locked((tx) => cancelWorkflowIn(this.taskParts, tx, id, "operator"));
  }

  pause(id: string): Promise<void> {
    return this.locked((tx) => pauseWorkflowIn(this.taskParts, tx, id, "operator"));
  }

  resume(id: string): Promise<void> {
    return this.locked((tx) => resumeWorkflowIn(this.taskParts, tx, id, "operator"));
  }

  rerun(id: string, from: readonly string[], dryRun = false): Promise<RerunPlan> {
    return this.locked((tx) => rerunWorkflowIn(this.taskParts, tx, { id, from, dryRun, by: "operator" }));
  }

  review(id: string, step: string, verdict: "approve" | "reject" = "approve", note: string | null = null): Promise<void> {
    return this.locked((tx) => reviewStepIn(this.taskParts, tx, { workflow: id, step, verdict, by: "operator", note }));
  }

  /** Takes turns until none is ready. Answers how many. */
  async drain(most = 200): Promise<number> {
    for (let taken = 0; taken < most; taken++) {
      const [item] = await this.claim();
      if (!item) return taken;
      await this.take(item);
    }
    throw new Error(`more than ${most} turns`);
  }

  async run(id: string): Promise<WorkflowRun> {
    return (await readWorkflowRun(this.store.read, id)) as WorkflowRun;
  }

  /** By id, the state of every step. */
  async states(id: string): Promise<Record<string, RunStepView["status"]>> {
    return Object.fromEntries((await this.run(id)).steps.map((step) => [step.id, step.status]));
  }

  async step(id: string, step: string): Promise<RunStepView> {
    return (await this.run(id)).steps.find((one) => one.id === step) as RunStepView;
  }

  /** As operators see it. */
  async valueIn(id: string, key: string): Promise<unknown> {
    const caller = { kind: "operator", name: "operator", roles: [], run: null, step: null, call: null } as const;
    return (await this.pools.read(caller, `run:${id}`, key))?.value;
  }

  /** An operator writes into the shared memory of the run. */
  async put(id: string, key: string, value: unknown, ifVersion?: number): Promise<void> {
    const caller = { kind: "operator", name: "operator", roles: [], run: null, step: null, call: null } as const;
    await this.pools.write(caller, `run:${id}`, [{ key, value, ...(ifVersion === undefined ? {} : { ifVersion }) }]);
  }

  async eventsOf(id: string): Promise<string[]> {
    return (await this.store.ledger.read(0, 5_000, ["workflow", id])).map(({ type, data }) => {
      const { step } = data as { step?: string };
      return step === undefined ? type : `${type} ${step}`;
    });
  }

  /** Ready or running, by their runs. */
  async openTurns(): Promise<string[]> {
    const rows = await this.store.read.all<{ payload: string }>`select payload from work order by id`;
    return rows.map(({ payload }) => (JSON.parse(payload) as TurnPayload).runId);
  }
}

export function goalIn({ messages }: ModelRequest): string {
  const told = messages.map((message) => (message.role === "user" ? message.text : "")).find((text) => text.startsWith("Goal: "));
  return told?.split("\n")[0]?.slice("Goal: ".length) ?? "?";
}

/** What the step was told of the shared memory. */
export function readsIn({ recalled }: ModelRequest): string {
  return recalled ?? "";
}

/** What the gateway said about the answer before. */
export function fromGateway({ messages }: ModelRequest): string[] {
  return messages.flatMap((message) => (message.role === "user" && message.text.startsWith("[from the gateway]") ? [message.text] : []));
}

export const step = (id: string, more: object = {}) => ({ id, goal: `do ${id}`, ...more });
