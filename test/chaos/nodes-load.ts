import { setTimeout as sleep } from "node:timers/promises";
import type { Admission } from "../../src/contract/wire.ts";
import type { TelegramStandIn } from "../platforms/telegram.ts";
import type { Said } from "./channels-check.ts";
import type { Cluster, ClusterNode } from "./nodes-cluster.ts";
import { BRANCHES, PLACES, placeName, workflowOf } from "./nodes-world.ts";

/** One attempt of a client: what it asked of which node, when, and what it heard. */
export interface Operation {
  readonly kind: "message" | "tree" | "spend" | "workflow";
  readonly id: string;
  /** The conversation; of others, the id. */
  readonly session: string;
  readonly node: string;
  readonly began: number;
  readonly ended: number;
  /** The run or workflow that came of it; null: nobody knows, or it was refused. */
  readonly result: string | null;
  /** Why there is no result. Whatever has none is asked for again, by the same key, until it has. */
  readonly error: string | null;
}

const CLIENTS = 4;
/** How often, roughly: each client, somebody at the platform, a workflow, a tree of tasks. */
const EVERY_MS = { message: 1_200, said: 500, workflow: 8_000, tree: 10_000 };
const AGAIN_MS = 150;
/** Every so many messages: thinks for longer than a lease; is posted to another node as well. */
const SLOW_EVERY = 6;
const TWICE_EVERY = 3;
/** Of a call that nobody answers in the end. */
const GIVE_UP_MS = 120_000;

/** People and programs that go on asking, whatever happens to the nodes. */
export class Load {
  readonly operations: Operation[] = [];
  readonly said: Said[] = [];
  readonly problems: string[] = [];
  readonly #cluster: Cluster;
  readonly #telegram: TelegramStandIn;
  readonly #random: () => number;
  readonly #pace: number;
  readonly #loops: Promise<void>[] = [];
  #isOver = false;
  #numbers = 0;

  /** `pace`: how much slower they ask. */
  constructor(cluster: Cluster, telegram: TelegramStandIn, random: () => number, pace: number) {
    this.#pace = pace;
    this.#cluster = cluster;
    this.#telegram = telegram;
    this.#random = random;
  }

  start(): void {
    for (let client = 0; client < CLIENTS; client++) this.#loops.push(this.#every(EVERY_MS.message, () => this.#message(client)));
    this.#loops.push(this.#every(EVERY_MS.said, () => this.#say()));
    this.#loops.push(this.#every(EVERY_MS.workflow, () => this.#workflow()));
    for (const kind of ["tree", "spend"] as const) this.#loops.push(this.#every(EVERY_MS.tree, () => this.#tree(kind)));
  }

  /** Nothing new is begun; what was is asked for until it is acknowledged. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await sleep(this.#pace * ms * (0.5 + this.#random()));
      if (!this.#isOver) await work();
    }
  }

  /** One after another in its conversation: the next is posted when this one is acknowledged, so that their order is known. */
  async #message(client: number): Promise<void> {
    const number = this.#numbers++;
    const id = `g${number}`;
    const text = `go ${id} of ${client}${number % SLOW_EVERY === SLOW_EVERY - 1 ? " slowly" : ""}`;
    const body = { id, platform: "test", chat: `c${client}`, peer: `c${client}`, chat_type: "dm", text, agent: "main" };
    const post = (): Promise<void> =>
      this.#ask("message", id, `c${client}`, (node) => node.call<Admission>("POST", "/api/messages", body).then(({ runId }) => runId));
    await post();
    // As a client does that lost the answer: the same again, to whichever node.
    if (number % TWICE_EVERY === 0) await post();
  }

  async #say(): Promise<void> {
    const place = PLACES[Math.floor(this.#random() * PLACES.length)] as (typeof PLACES)[number];
    const word = `w${this.said.length}${this.said.length % 17 === 16 ? "long" : ""}`;
    this.said.push({ word, chat: placeName(place) });
    await this.#telegram.say(`say ${word}`, place);
  }

  async #workflow(): Promise<void> {
    const name = `f${this.#numbers++}`;
    const body = { workflow: workflowOf(BRANCHES), input: { name }, idempotency_key: name };
    await this.#ask("workflow", name, name, (node) => node.call<{ id: string }>("POST", "/api/workflows/runs", body).then(({ id }) => id));
  }

  async #tree(kind: "tree" | "spend"): Promise<void> {
    const id = `t${this.#numbers++}`;
    const [verb, agent] = kind === "tree" ? ["split", "boss"] : ["spend", "thrifty"];
    const body = { id, platform: "test", chat: id, peer: id, chat_type: "dm", text: `${verb} ${id}`, agent };
    await this.#ask(kind, id, id, (node) => node.call<Admission>("POST", "/api/messages", body).then(({ runId }) => runId));
  }

  async #ask(kind: Operation["kind"], id: string, session: string, ask: (node: ClusterNode) => Promise<string>): Promise<void> {
    const until = Date.now() + GIVE_UP_MS;
    while (Date.now() < until) {
      const node = this.#cluster.pick(this.#random);
      if (node) {
        const began = performance.now();
        const note = (result: string | null, error: string | null): void =>
          void this.operations.push({ kind, id, session, node: node.name, began, ended: performance.now(), result, error });
        try {
          return note(await ask(node), null);
        } catch (error) {
          note(null, (error as Error).message.slice(0, 300));
        }
      }
      await sleep(AGAIN_MS);
    }
    this.problems.push(`${kind} ${id} was not acknowledged within ${GIVE_UP_MS / 1_000} s: ${this.operations.at(-1)?.error}`);
  }
}
