import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { isOver, type Run } from "../../src/contract/wire.ts";
import { isWorkflowOver, type WorkflowRun } from "../../src/contract/workflows.ts";
import type { DaemonLife } from "./daemon-life.ts";
import { checkTurns } from "./turns-check.ts";
import type { Play, Witness } from "./turns-witness.ts";
import { checkWorkflows, FAN_OUT } from "./workflows-check.ts";

const PAUSE_MS = 150;
const PATIENCE_MS = 120_000;
/**
 * A job has one task at a time and is looked at once a second: one that is due every second falls behind when its turns take longer than that,
 * and of more than a hundred times that wait the oldest are missed.
 */
const TICK_S = 5;
/** Of ten that are sent: a workflow, two that delegate, and messages. */
const KINDS = ["workflow", "message", "ask", "message", "message", "message", "ask", "message", "message", "message"] as const;

const WORKFLOW = {
  name: "upgrade",
  keys: { items: { schema: { type: "array" } }, results: { policy: "append" } },
  steps: [
    { id: "plan", agent: "main", goal: "flow {{input.name}} plan", writes: ["items"] },
    {
      ...{ id: "work", agent: "worker", needs: ["plan"], foreach: "items", max_parallel: FAN_OUT, reads: ["items"], writes: ["results"] },
      goal: "flow {{input.name}} item {{item}}",
    },
    { id: "gather", agent: "main", needs: ["work"], reads: ["results"], writes: ["summary"], goal: "flow {{input.name}} gather" },
  ],
  outputs: ["results", "summary"],
};

/** What the agents of the house think. */
export const play: Play = ({ message, results }, call) => {
  const [, step] = /flow \S+ (plan|item \d+|gather)/.exec(message) ?? [];
  if (step === "plan") return { text: JSON.stringify(Array.from({ length: FAN_OUT }, (_, index) => index)), calls: [] };
  if (step !== undefined) {
    if (results.length === 0) return { text: "first", calls: [call("look"), call("put"), call("fire")] };
    const doubts = results.flat().filter(({ text }) => text.startsWith("outcome unknown")).length;
    return { text: `${step} done, ${doubts} unknown`, calls: [] };
  }
  const [, child] = /child (\S+)/.exec(message) ?? [];
  if (child !== undefined) {
    if (results.length === 0) return { text: "first", calls: [call("fire")] };
    return { text: `child of ${child} is done`, calls: [] };
  }
  const [, asks] = /ask (\S+)/.exec(message) ?? [];
  if (asks !== undefined) {
    if (results.length > 0) return { text: `asked ${asks}: ${JSON.stringify(results.flat())}`, calls: [] };
    return { text: "first", calls: [{ ...call("delegate_task"), args: JSON.stringify({ goal: `child ${asks}`, tools: ["fire"] }) }] };
  }
  if (/tick/.test(message)) return { text: "ticked", calls: [] };
  if (results.length === 0) return { text: "first", calls: [call("look"), call("put"), call("fire"), call("look")] };
  if (results.length === 1) return { text: "then", calls: [call("fire"), call("put")] };
  return { text: `told ${message}: ${JSON.stringify(results.flat())}`, calls: [] };
};

/** Somebody who never gives up: what is not acknowledged is sent again under the same id, to whoever is there. */
export class UpgradeLoad {
  readonly #nodes: () => readonly DaemonLife[];
  readonly #messages = new Map<string, string>();
  readonly #asks = new Map<string, string>();
  readonly #workflows = new Map<string, string>();
  #job = "";
  #isOver = false;
  #turn = 0;
  #sending: Promise<void> | undefined;
  /** How often a node did not answer. */
  sentAgain = 0;

  constructor(nodes: () => readonly DaemonLife[]) {
    this.#nodes = nodes;
  }

  async begin(): Promise<void> {
    const job = await this.#ask("the job", (node) =>
      node.call<{ id: string }>("POST", "/api/schedules", {
        agent: "main",
        name: "tick",
        cron: `*/${TICK_S} * * * * *`,
        goal: "tick",
        catch_up: "all",
      }),
    );
    this.#job = job.id;
    this.#sending = this.#send();
  }

  get sent(): number {
    return this.#messages.size + this.#asks.size + this.#workflows.size;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#sending;
  }

  async #send(): Promise<void> {
    for (let number = 0; !this.#isOver; number++) {
      const kind = KINDS[number % KINDS.length];
      const id = `u${number}`;
      if (kind === "workflow") {
        const asked = { workflow: WORKFLOW, input: { name: id }, idempotency_key: id };
        this.#workflows.set(id, (await this.#ask<{ id: string }>(id, (node) => node.call("POST", "/api/workflows/runs", asked))).id);
      } else {
        const text = kind === "ask" ? `ask ${id}` : `go ${id}`;
        const message = { id, platform: "test", chat: id, peer: id, chat_type: "dm", text };
        const { runId } = await this.#ask<{ runId: string }>(id, (node) => node.call("POST", "/api/messages", message));
        (kind === "ask" ? this.#asks : this.#messages).set(id, runId);
      }
      await sleep(PAUSE_MS);
    }
  }

  /** By turns to each that is there. */
  async #ask<T>(id: string, request: (node: DaemonLife) => Promise<T>): Promise<T> {
    for (const end = Date.now() + PATIENCE_MS; ; ) {
      const there = this.#nodes().filter(({ dead }) => !dead);
      const node = there[this.#turn++ % there.length];
      try {
        if (node) return await request(node);
      } catch (error) {
        if (Date.now() > end) throw new Error(`${id} was not taken within ${PATIENCE_MS / 1000} s: ${(error as Error).message}`);
      }
      this.sentAgain++;
      await sleep(50);
    }
  }

  /** Everything that was acknowledged, once it is over, held against what was seen outside. */
  async check(node: DaemonLife, witness: Witness): Promise<{ readonly problems: string[]; readonly counts: Record<string, number> }> {
    const runs = await this.#runs(node, this.#messages);
    const asked = await this.#runs(node, this.#asks);
    const flows = new Map<string, WorkflowRun>();
    for (const [name, id] of this.#workflows)
      flows.set(
        name,
        await settled(
          id,
          () => node.call<WorkflowRun>("GET", `/api/workflows/runs/${id}`),
          (run) => isWorkflowOver(run.status),
        ),
      );
    // As long as the clock starts something there is no end of events.
    await node.call("DELETE", `/api/schedules/${this.#job}`);
    const events = await node.events();
    const unknown = new Map<string, number>();
    for (const { type, subject, data } of events)
      if (type === "tool.settled" && (data as { state?: string }).state === "unknown")
        unknown.set(subject[1] as string, (unknown.get(subject[1] as string) ?? 0) + 1);
    const about = (words: RegExp) => new Map([...witness.done].filter(([what]) => words.test(what)));
    const turns = checkTurns(runs, { done: about(/ for go /), keyed: witness.keyed, answers: witness.answers }, unknown);
    const steps = checkWorkflows(flows, { done: about(/ for .*(flow|child) /s) }, events);
    const ticks = checkTicks(events);
    return {
      problems: [...turns.problems, ...steps.problems, ...checkAsked(asked), ...ticks.problems],
      counts: {
        messages: runs.size,
        delegations: asked.size,
        workflows: flows.size,
        "times by the clock": ticks.fired,
        "unsafe calls made once": (turns.counts["fired once"] as number) + (steps.counts["fired once"] as number),
        "outcome unknown": [...unknown.values()].reduce((sum, each) => sum + each, 0),
        "sent again": this.sentAgain,
      },
    };
  }

  async #runs(node: DaemonLife, sent: ReadonlyMap<string, string>): Promise<Map<string, Run>> {
    const runs = new Map<string, Run>();
    for (const [id, run] of sent)
      runs.set(
        id,
        await settled(
          id,
          () => node.call<Run>("GET", `/api/runs/${run}`),
          ({ status }) => isOver(status),
        ),
      );
    return runs;
  }
}

async function settled<T>(what: string, read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; ; await sleep(50)) {
    const value = await read();
    if (isDone(value)) return value;
    if (Date.now() > end) throw new Error(`${what} is not over within ${PATIENCE_MS / 1000} s: ${JSON.stringify(value).slice(0, 300)}`);
  }
}

function checkAsked(runs: ReadonlyMap<string, Run>): string[] {
  return [...runs].flatMap(([id, run]) => {
    const text = run.reply?.text ?? "";
    return run.status === "completed" && text.startsWith(`asked ${id}: `) && text.includes(`child of ${id} is done`)
      ? []
      : [`what ${id} delegated: ${run.status} ${run.error?.message ?? text.slice(0, 200)}`];
  });
}

/** Each time of the clock once, in order, none left out. */
function checkTicks(events: readonly LedgerEvent[]): { readonly problems: string[]; readonly fired: number } {
  const times = events.filter(({ type }) => type === "schedule.fired").map(({ data }) => (data as { time: number }).time);
  const gaps = times.slice(1).filter((time, index) => time > (times[index] as number) + TICK_S * 1_000);
  const twice = times.filter((time, index) => times.indexOf(time) !== index);
  const missed = events.filter(({ type }) => type === "schedule.missed");
  return {
    fired: times.length,
    problems: [
      ...twice.map((time) => `the clock's time ${time} was started twice`),
      ...gaps.map((time) => `times of the clock before ${time} were left out`),
      ...missed.map(({ data }) => `times of the clock were missed: ${JSON.stringify(data)}`),
      ...(times.length === 0 ? ["the clock was never heard"] : []),
    ],
  };
}
