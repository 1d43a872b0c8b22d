import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { delegationTools } from "../../src/abilities/tools/delegation/delegation-tools.ts";
import type { Tool } from "../../src/abilities/tools/tool.ts";
import type { TaskParts } from "../../src/acts/tasks/task-parts.ts";
import { TURN_WORK } from "../../src/acts/work-kinds.ts";
import type { ModelRequest } from "../../src/kernel/model.ts";
import { type CallRecord, readCalls } from "../../src/records/journal/calls.ts";
import { readTask, type StoredTask } from "../../src/records/tasks/task-rows.ts";
import { Tasks } from "../../src/records/tasks/tasks.ts";
import type { Store } from "../../src/store/store.ts";
import { taskParts } from "../task-parts.ts";
import { newId } from "./sessions-place.ts";
import { type Answer, call, TurningHouse } from "./turning-house.ts";

/** One request of a turn, as a test wants to know it. */
export interface Asked {
  /** What the turn was told to do. */
  readonly input: string;
  /** How many answers the turn has had. */
  readonly answers: number;
  /** What its calls came to, the last ones. */
  readonly results: readonly string[];
  readonly request: ModelRequest;
}

/** A house whose agents delegate. `does` says what each turn answers; the test takes the turns. */
export class DelegatingHouse extends TurningHouse {
  readonly taskParts: TaskParts;
  does: (asked: Asked) => Answer | Promise<Answer> = () => "done";
  readonly delegation: readonly Tool[];

  constructor(store: Store, config: object) {
    super(store, config);
    this.taskParts = taskParts(store, newId, this.agents);
    const models = modelRegistry([
      { name: "test", model: () => ({ name: "test/model", scripted: true, stream: async function* () {} }), models: () => [] },
    ]);
    this.delegation = delegationTools({ tasks: this.taskParts, models, seen: new Tasks(store, this.agents) });
    this.tools = this.delegation;
    this.parts = { workflows: this.taskParts.workflows };
    this.play = (request) => this.does(askedOf(request));
  }

  /** Takes turns until none is there to be taken. Answers how many. */
  async takeAll(most = 100): Promise<number> {
    for (let taken = 0; taken < most; taken++) {
      const [item] = await this.store.queue.claim("node", 1, 60_000, [TURN_WORK]);
      if (!item) return taken;
      await this.take(item);
    }
    throw new Error(`more than ${most} turns`);
  }

  async tasks(): Promise<StoredTask[]> {
    const rows = await this.store.read.all<{ id: string }>`select id from tasks order by id`;
    return Promise.all(rows.map(async ({ id }) => (await readTask(this.store.read, id)) as StoredTask));
  }

  calls(run: string): Promise<CallRecord[]> {
    return readCalls(this.store.read, run);
  }

  /** Of everything, in their order. */
  async told(type: string): Promise<{ actor: string; data: Record<string, unknown> }[]> {
    const events = await this.store.ledger.read(0, 10_000);
    return events.filter((event) => event.type === type) as unknown as { actor: string; data: Record<string, unknown> }[];
  }
}

function askedOf(request: ModelRequest): Asked {
  const { messages } = request;
  const at = messages.findLastIndex(({ role }) => role === "user");
  const message = messages[at];
  const after = messages.slice(at + 1);
  const last = after.findLast(({ role }) => role === "tool");
  return {
    input: message?.role === "user" ? message.text : "",
    answers: after.filter(({ role }) => role === "assistant").length,
    results: last?.role === "tool" ? last.results.map(({ text }) => text) : [],
    request,
  };
}

export const delegate = (goal: string, more: object = {}, id?: string): Answer => ({
  calls: [call("delegate_task", { goal, ...more }, id)],
});
export const delegateTo = (agent: string, goal: string, more: object = {}, id?: string): Answer => ({
  calls: [call("agent_delegate", { agent, goal, ...more }, id)],
});
