import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, seededRandom } from "../../src/kernel/random.ts";
import { type ClientPlan, instant, type Told } from "./http-records.ts";
import { type Answer, type Answered, type Asking, Wire } from "./http-wire.ts";

type Untold<Each> = Each extends unknown ? Omit<Each, "by"> : never;

interface OpenRequest {
  readonly path: string;
  readonly body: unknown;
  readonly key: string;
  readonly settle: (answer: Answered | null) => void;
  nextTry: number;
}

const REPEAT_US = 250_000;

/** One client: an identity with its randomness, its requests without an answer, and the log of all it saw. */
export class HttpClient {
  readonly plan: ClientPlan;
  readonly random: Random;
  readonly wire: Wire;
  generation = 0;
  #count = 0;
  #open: OpenRequest[] = [];

  constructor(plan: ClientPlan) {
    this.plan = plan;
    this.random = seededRandom(plan.seed);
    this.wire = new Wire(plan.urls, plan.token, () => this.random.fraction());
  }

  get name(): string {
    return this.plan.name;
  }

  tell(record: Untold<Told>): void {
    writeSync(1, `${JSON.stringify({ ...record, by: this.name })}\n`);
  }

  odd(what: string, answer: Answered): void {
    this.tell({ kind: "odd", what: `${what}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 400)}` });
  }

  /** A text that nobody else ever writes. */
  unique(): string {
    return `${this.name}-${++this.#count}`;
  }

  chance(probability: number): boolean {
    return this.random.fraction() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.random.fraction() * items.length)] as Item;
  }

  pause(ms: number): Promise<void> {
    return sleep(this.random.fraction() * ms);
  }

  ask(method: string, path: string, asking?: Asking): Promise<Answer> {
    return this.wire.ask(method, path, asking);
  }

  /** A POST with an idempotency key: one whose answer was lost is repeated until there is one; `settle` hears it, or null at the end. */
  async keyed(path: string, body: unknown, settle: (answer: Answered | null) => void): Promise<void> {
    const key = this.unique();
    const answer = await this.#post(path, body, key);
    if (answer === null) this.#open.push({ path, body, key, settle, nextTry: instant() + REPEAT_US * this.random.fraction() });
    else {
      settle(answer);
      if (answer.status < 300 && this.chance(0.2)) await this.#again(path, body, key, answer);
    }
  }

  /** One round through the requests that still have no answer. */
  async repeatOpen(): Promise<void> {
    const due = this.#open.filter((each) => each.nextTry <= instant());
    for (const request of due) {
      request.nextTry = instant() + REPEAT_US;
      const answer = await this.#post(request.path, request.body, request.key);
      // Another hand may have been faster.
      if (answer === null || !this.#open.includes(request)) continue;
      this.#open = this.#open.filter((each) => each !== request);
      request.settle(answer);
    }
  }

  async drain(): Promise<void> {
    const until = instant() + this.plan.drainMs * 1_000;
    while (this.#open.length > 0 && instant() < until) {
      await this.repeatOpen();
      await sleep(50);
    }
    for (const { settle } of this.#open) settle(null);
    this.wire.close();
  }

  async #post(path: string, body: unknown, key: string): Promise<Answered | null> {
    const answer = await this.ask("POST", path, { body, headers: { "idempotency-key": key } });
    if (answer.status === null) return null;
    const { error } = answer.body as { error?: { code: string } };
    return error?.code === "request.in_progress" ? null : answer;
  }

  async #again(path: string, body: unknown, key: string, first: Answered): Promise<void> {
    const second = await this.#post(path, body, key);
    if (!second) return;
    const same = second.status === first.status && JSON.stringify(second.body) === JSON.stringify(first.body);
    this.tell({ kind: "repeated", path, key, same });
  }
}
