import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { delegationTools } from "../../src/abilities/tools/delegation/delegation-tools.ts";
import { failDeadTurn } from "../../src/acts/fail-turn.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { cancelTask } from "../../src/acts/tasks/cancel-task.ts";
import { failOverdueTasks } from "../../src/acts/tasks/overdue-tasks.ts";
import { TURN_WORK } from "../../src/acts/work-kinds.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { Failure, isFailure } from "../../src/kernel/failure.ts";
import type { Random } from "../../src/kernel/random.ts";
import { Tasks } from "../../src/records/tasks/tasks.ts";
import { Budgets } from "../../src/records/usage/budgets.ts";
import { FlowingHouse } from "../contract/flowing-house.ts";
import { type Answer, call } from "../contract/turning-house.ts";
import type { StorePlace } from "../stores.ts";
import { lookOver } from "./workflow-order.ts";

const POINTS: readonly CrashPoint[] = [
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "turn.answered",
  "turn.steered",
  "turn.parked",
  "turn.committed",
];
/** What somebody may be told who comes too late, or asks for what cannot be. */
const REFUSALS = [
  "workflow.over",
  "workflow.running",
  "workflow.not_waiting",
  "task.over",
  "run.over",
  "request.not_found",
  "pool.sealed",
  "pool.conflict",
  "fence.stale",
];
const KEYS = { list: { schema: { type: "array" } }, log: { policy: "append" }, last: { policy: "last_write" } };
const AGENT = {
  model: "test/model",
  subagents: { max_depth: 3, max_children: 5, agents: ["main", "ada", "ben"] },
  budget: { tokens_per_task: 1e9 },
};

/** Workflows on two nodes, and everything that people, time and failing machines can do to them, in an order that a seed decides. */
export class WorkflowStorm {
  readonly told: string[] = [];
  readonly #place: StorePlace;
  readonly #random: Random;
  readonly #nodes: readonly FlowingHouse[];
  #calm = false;
  #deaths = 0;

  private constructor(place: StorePlace, random: Random, nodes: readonly FlowingHouse[]) {
    this.#place = place;
    this.#random = random;
    this.#nodes = nodes;
    for (const node of nodes) node.playStep = (goal, request) => this.#play(goal, request.messages.length);
  }

  static async gather(place: StorePlace, random: Random): Promise<WorkflowStorm> {
    const nodes: FlowingHouse[] = [];
    for (let count = 0; count < 2; count++) {
      const store = await place.open();
      const node = new FlowingHouse(store, { agents: { main: AGENT, ada: AGENT, ben: AGENT } });
      const model = { name: "test/model", scripted: true, stream: async function* () {} };
      const models = modelRegistry([{ name: "test", model: () => model, models: () => [] }]);
      node.tools = [...node.tools, ...delegationTools({ tasks: node.taskParts, models, seen: new Tasks(store, node.agents) })];
      nodes.push(node);
    }
    return new WorkflowStorm(place, random, nodes);
  }

  /** One thing, or several at once on both nodes; then all must be in order. */
  async happen(): Promise<void> {
    if (this.#below(8) === 0) await this.#place.elapse(this.#oneOf([1_000, 20_000, 70_000]));
    await Promise.all(Array.from({ length: 1 + this.#below(4) }, () => this.#one()));
    await lookOver(this.#node.store);
  }

  /** Nobody disturbs any more: all of it comes to its end. */
  async calm(): Promise<void> {
    this.#calm = true;
    for (let round = 0; round < 60; round++) {
      await this.#place.elapse(4_000_000);
      await this.#upkeep();
      for (const { id } of await this.#rows("select id from workflow_runs where paused = 1 and ended_at is null"))
        await this.#node.resume(id);
      for (const { id, step } of await this.#rows("select workflow_id as id, step from workflow_steps where state = 'review'"))
        await this.#node.review(id, step as string);
      for (const node of this.#nodes) await node.drain(500);
      await lookOver(this.#node.store);
      if ((await this.#rows("select id from workflow_runs where ended_at is null")).length === 0) break;
    }
    await new Budgets(this.#node.store).sweep();
    const left = await this.#rows(`select 'workflow' as what, id from workflow_runs where ended_at is null
      union all select kind, id from tasks where ended_at is null
      union all select 'work', cast(id as text) from work where kind = '${TURN_WORK}'
      union all select 'reserved', run_id from budget_reservations`);
    if (left.length > 0) throw new Error(`left over: ${JSON.stringify(left.slice(0, 10))}`);
  }

  async remove(): Promise<void> {
    for (const node of this.#nodes) node.remove();
    await this.#place.remove();
  }

  get #node(): FlowingHouse {
    return this.#oneOf(this.#nodes);
  }

  #below(most: number): number {
    return Math.floor(this.#random.fraction() * most);
  }

  #oneOf<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T;
  }

  #rows(statement: string): Promise<{ id: string; step?: string }[]> {
    return this.#place.tamper(statement) as Promise<{ id: string; step?: string }[]>;
  }

  /** Of what there is, any; undefined: there is nothing. */
  async #any(statement: string): Promise<{ id: string; step?: string } | undefined> {
    const rows = await this.#rows(statement);
    return rows.length === 0 ? undefined : this.#oneOf(rows);
  }

  async #one(): Promise<void> {
    const node = this.#node;
    const chance = this.#below(100);
    if (chance < 8) return this.#try("start", () => node.start(this.#definition()));
    if (chance < 62) return this.#try("take", () => this.#take(node, this.#below(6) === 0));
    if (chance < 66) return this.#try("upkeep", () => this.#upkeep());
    if (chance < 76) {
      const at = await this.#any("select workflow_id as id, step from workflow_steps where state = 'review'");
      if (!at) return;
      const verdict = this.#below(5) === 0 ? "reject" : "approve";
      return this.#try(`${verdict} ${at.id} ${at.step}`, () => node.review(at.id, at.step as string, verdict));
    }
    const run = await this.#any("select id from workflow_runs");
    if (!run) return;
    const { id } = run;
    if (chance < 79) return this.#try(`cancel ${id}`, () => node.cancel(id));
    if (chance < 82) return this.#try(`pause ${id}`, () => node.pause(id));
    if (chance < 87) return this.#try(`resume ${id}`, () => node.resume(id));
    if (chance < 90) {
      const at = await this.#any(`select step as id from workflow_steps where workflow_id = '${id}'`);
      return this.#try(`rerun ${id} from ${at?.id}`, () => node.rerun(id, at ? [at.id] : []));
    }
    if (chance < 93) {
      const key = this.#oneOf(["list", "last", "k0", "k1"]);
      return this.#try(`put ${id} ${key}`, async () => {
        const now = await this.#any(
          `select current_version as id from pool_keys where pool = 'run:${id}' and key = '${key}' and current_version is not null`,
        );
        await node.put(id, key, key === "list" ? ["x", "y"] : "put", now ? Number(now.id) : undefined);
      });
    }
    if (chance < 97) {
      const at = await this.#any("select r.id from runs r join tasks t on t.run_id = r.id where t.ended_at is null");
      return at && this.#try(`stop ${at.id}`, () => node.locked((tx) => stopRunIn(node.taskParts, tx, at.id, "operator")));
    }
    const at = await this.#any("select id from tasks where ended_at is null");
    return at && this.#try(`cancel task ${at.id}`, () => cancelTask(node.taskParts, at.id, "operator"));
  }

  async #try(what: string, body: () => Promise<unknown>): Promise<void> {
    try {
      await body();
      this.told.push(what);
    } catch (error) {
      if (!isFailure(error) || !REFUSALS.includes(error.code)) throw new Error(`${what}: ${(error as Error).stack}`, { cause: error });
      this.told.push(`${what}: ${error.code}`);
    }
  }

  async #take(node: FlowingHouse, dies: boolean): Promise<void> {
    if (!dies) {
      const [item] = await node.claim(`node${this.#below(2)}`);
      return item && node.take(item);
    }
    const owner = `dead${this.#deaths++}`;
    const [item] = await node.claim(owner);
    if (!item) return;
    const lost = new AbortController();
    const point = this.#oneOf(POINTS);
    // Its own house: what it reaches is nobody else's.
    const dying = new FlowingHouse(node.store, { agents: { main: AGENT, ada: AGENT, ben: AGENT } });
    dying.tools = node.tools;
    dying.playStep = node.playStep;
    dying.reached = (at) => {
      if (at !== point) return;
      lost.abort();
      throw new Error(`dead at ${at}`);
    };
    await dying.take(item, lost);
    dying.remove();
    await node.store.transact("its lease ends", (tx) => tx.run`update work set lease_until = 0 where owner = ${owner}`);
    await node.store.queue.reap();
  }

  async #upkeep(): Promise<void> {
    const node = this.#node;
    await node.store.queue.reap();
    for (const dead of await node.store.queue.dead(100, [TURN_WORK])) await failDeadTurn(node.taskParts, dead);
    await failOverdueTasks(node.taskParts);
  }

  #play(goal: string, messages: number): Answer {
    const chance = this.#calm ? 50 : this.#below(100);
    if (chance < 6) throw new Failure("model.refused", "no");
    if (chance < 9) throw new Failure("model.busy", "not now");
    if (messages < 3 && chance >= 60) {
      const key = /writes (\w+)/.exec(goal)?.[1];
      if (chance < 70 && key) return { calls: [call("context_write", { key, value: key === "list" ? ["a"] : goal })] };
      if (chance < 74) return { calls: [call("context_read", { key: "last" })] };
      if (chance < 86) return { calls: [call("delegate_task", { workflow: this.#definition(2).steps })] };
      if (chance < 89) return { calls: [call("delegate_task", { goal: "child" })] };
    }
    return goal.includes("writes list") ? '["a", "b", "c"]' : `did ${goal.slice(0, 50)}`;
  }

  #definition(most = 6): { steps: object[]; keys: object; on_stale: string; outputs: string[] } {
    const steps: { id: string }[] = [];
    const count = 1 + this.#below(most);
    for (let index = 0; index < count; index++) {
      const before = steps.map(({ id }) => id).filter(() => this.#below(2) === 0);
      const isList = index === 0;
      const writes = isList ? "list" : this.#oneOf(["log", "last"]);
      const afterList = index > 0 && before.includes("s0");
      const each = afterList && this.#below(3) === 0;
      const when = this.#oneOf([undefined, undefined, undefined, "steps.s0.status == 'completed'", "outputs.list == null", "1 / 0 == 1"]);
      steps.push({
        id: `s${index}`,
        goal: `${each ? "{{item}} " : ""}step ${index} writes ${writes}`,
        ...(most > 2 && this.#below(2) ? { agent: this.#oneOf(["main", "ada", "ben"]) } : {}),
        needs: before,
        writes: [each ? "log" : writes],
        reads: afterList && this.#below(2) ? ["list", "last"] : [],
        ...(each ? { foreach: "list", ...(this.#below(2) ? { max_parallel: 1 } : {}) } : {}),
        ...(when !== undefined && before.includes("s0") && this.#below(2) ? { when } : {}),
        ...(this.#below(3) === 0 ? { retry: { attempts: 2, backoff: this.#oneOf(["none", "fixed"]), delay: "5s" } } : {}),
        ...(this.#below(4) === 0 ? { timeout: "60s" } : {}),
        ...(this.#below(6) === 0 ? { review: "human" } : {}),
        ...(this.#below(2) ? { on_stale: this.#oneOf(["rerun", "rebase", "warn", "fail"]) } : {}),
      } as { id: string });
    }
    return { steps, keys: KEYS, on_stale: "rerun", outputs: ["log"] };
  }
}
