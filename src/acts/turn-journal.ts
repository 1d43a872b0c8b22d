import type { ReachedPoint } from "../kernel/crash-points.ts";
import { Failure } from "../kernel/failure.ts";
import type { Label } from "../kernel/label.ts";
import type { Approvals, Consumed } from "../records/access/approvals.ts";
import { type CallResult, endCall, type NewCall, noteCall, noteWaitingCall } from "../records/journal/calls.ts";
import { addStep, type NewStep, type Response } from "../records/journal/steps.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import { Budgets, type CallToReserve } from "../records/usage/budgets.ts";
import type { CallUsage } from "../records/usage/usage.ts";
import type { Lasts, Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import type { Claim } from "../store/work-queue.ts";

/** What came of a call, for its record. */
export interface CallEnd {
  readonly result: CallResult;
  readonly labels?: readonly Label[];
  /** For the event. */
  readonly told?: Readonly<Record<string, unknown>>;
}

/** A call that has opened tasks: what comes of it comes of them. */
export interface CallWaits {
  readonly waitsFor: readonly string[];
}

export interface JournalParts {
  readonly store: Store;
  readonly approvals: Approvals;
  readonly reached: ReachedPoint;
}

/**
 * What one attempt at a turn writes down while it goes on. Every record is refused to an attempt whose claim was lost, with whatever was to
 * happen in the same transaction: so nothing that was recorded is ever done or said twice.
 */
export class TurnJournal {
  readonly #parts: JournalParts;
  readonly #claim: Claim;
  readonly #run: RunInput;
  readonly #causedBy: number;
  readonly #budgets: Budgets;
  /** Calls whose record nobody waits for, while it is being made or could not be; with what is wrong. */
  readonly #owed = new Map<NewCall, unknown>();

  constructor(parts: JournalParts, claim: Claim, run: RunInput, causedBy: number) {
    this.#parts = parts;
    this.#claim = claim;
    this.#run = run;
    this.#causedBy = causedBy;
    this.#budgets = new Budgets(parts.store);
  }

  /** An answer with calls in it. Whoever acts on it has this behind him. `lasts`: with others, where all of its calls are pure. */
  async response(step: number, response: Response, lasts: Lasts): Promise<void> {
    this.#parts.reached("model.response.before");
    await this.#owned(
      "record answer",
      async (tx) => {
        await this.responseIn(tx, step, response);
        await this.usageIn(tx, step, response);
      },
      lasts,
    );
    this.#parts.reached("model.response.recorded");
  }

  /** The same inside the transaction that ends the turn, for an answer that nothing acts on but the turn's end. Answers the event's number. */
  async responseIn(tx: Tx, step: number, response: Response): Promise<number> {
    await addStep(tx, this.#run.id, step, { kind: "response", body: response });
    const { model, usage, cost, calls, text, cut } = response;
    const data = { step, model, usage, cost, calls: calls.length, characters: text.length, ...(cut ? { cut } : {}) };
    const [answered] = await this.#tell(tx, "model.answered", data);
    return answered as number;
  }

  /** What an answer came to. Last in its transaction: turns of one agent share the row of the day. */
  async usageIn(tx: Tx, step: number, used: CallUsage): Promise<void> {
    await this.#budgets.settleIn(tx, { run: this.#run.id, agent: this.#run.agent, step }, used);
  }

  /** Sets aside what a call of the model may come to. Answers how long its answer may be, null: as it was asked for; throws `budget.exceeded`. */
  async reserve(step: number, call: Omit<CallToReserve, "run" | "agent" | "step">): Promise<number | null> {
    const { store } = this.#parts;
    const reserved = await store.transact(
      "reserve budget",
      async (tx) => {
        this.refuseGaps();
        await store.queue.guard(tx, this.#claim);
        const made = await this.#budgets.reserveIn(tx, { ...call, run: this.#run.id, agent: this.#run.agent, step });
        if ("refused" in made) await this.#tell(tx, "budget.refused", { step, ...made.refused.details, message: made.refused.message });
        return made;
      },
      "locked",
    );
    if ("refused" in reserved) throw reserved.refused;
    return reserved.maxOutputTokens;
  }

  /** Words that came in between, or a summary. `body` may take more in the same transaction; false from it: nothing is added. */
  async add(
    type: "turn.steered" | "turn.compacted",
    step: number,
    body: (tx: Tx) => Promise<{ readonly added: NewStep; readonly labels?: readonly Label[]; readonly told: unknown } | null>,
  ): Promise<boolean> {
    return this.#owned("add to turn", async (tx) => {
      const made = await body(tx);
      if (!made) return false;
      await addStep(tx, this.#run.id, step, made.added, made.labels);
      await this.#tell(tx, type, made.told);
      return true;
    });
  }

  /** It is about to be made. From here on a crash leaves it in doubt. */
  async intend(call: NewCall): Promise<void> {
    await this.#owned("intend call", (tx) => this.#intendIn(tx, call, null));
    this.#parts.reached("tool.intended");
  }

  /** Spends a person's approval on it, and then it is about to be made, both or neither. */
  async intendApproved(call: NewCall, approval: string, hash: string): Promise<Consumed> {
    const consumed = await this.#owned("intend approved call", async (tx) => {
      const spent = await this.#parts.approvals.consume(tx, approval, hash);
      if (spent === "used") await this.#intendIn(tx, call, approval);
      return spent;
    });
    if (consumed === "used") this.#parts.reached("tool.intended");
    return consumed;
  }

  /** What came of it. */
  async settle(call: NewCall, end: CallEnd, ms: number): Promise<void> {
    this.#parts.reached("tool.ran");
    const { store, reached } = this.#parts;
    if (call.effect !== "pure") await this.#owned("settle call", (tx) => this.#settleIn(tx, call, end, ms));
    else if (!store.keepsOrder) await this.#owned("settle call", (tx) => this.#settleIn(tx, call, end, ms), "with others");
    else return this.#settleBehind(call, end, ms);
    reached("tool.settled");
  }

  /**
   * A pure call that is lost is made again, and nobody can tell: the turn goes on without waiting. What it writes next is written after this, mostly
   * together with it, and not without it.
   */
  #settleBehind(call: NewCall, end: CallEnd, ms: number): void {
    const { store, reached } = this.#parts;
    const settled = store.transact(
      "settle call",
      async (tx) => {
        this.#owed.set(call, new Failure("store.unavailable", `what came of a call of ${call.tool} could not be written in time`));
        try {
          await store.queue.progressed(tx, this.#claim);
          await this.#settleIn(tx, call, end, ms);
          this.#owed.delete(call);
        } catch (error) {
          this.#owed.set(call, error);
          throw error;
        }
      },
      "locked",
      "with others",
    );
    settled.then(() => reached("tool.settled")).catch((error) => this.#owed.set(call, error));
  }

  /** Before anything is written that rests on what was written before. */
  refuseGaps(): void {
    for (const error of this.#owed.values()) throw error;
  }

  /** Does it and records what came of it, or what it waits for, all or nothing. */
  async settleWithin<End extends CallEnd | CallWaits>(call: NewCall, began: () => number, body: (tx: Tx) => Promise<End>): Promise<End> {
    const end = await this.#owned("make call", async (tx) => {
      const made = await body(tx);
      if ("waitsFor" in made) await this.#waitIn(tx, call, made.waitsFor);
      else await this.#settleIn(tx, call, made, began());
      return made;
    });
    this.#parts.reached("waitsFor" in end ? "task.opened" : "tool.settled");
    return end;
  }

  /** The turn's row in the work queue: who waits for something is woken by it. */
  get work(): number {
    return this.#claim.id;
  }

  /** The event that whatever the turn does follows from. */
  get cause(): number {
    return this.#causedBy;
  }

  /** It was not made. */
  async refuse(call: NewCall, code: string, result: CallResult): Promise<void> {
    await this.#owned("refuse call", async (tx) => {
      await endCall(tx, call, "refused", result);
      await this.#tell(tx, "tool.refused", { step: call.step, place: call.place, tool: call.tool, code, because: result.text });
    });
  }

  /** It may have been made, and nobody can know. */
  async giveUp(call: NewCall, result: CallResult): Promise<void> {
    await this.#owned("give up call", async (tx) => {
      await endCall(tx, call, "unknown", result);
      await this.#tell(tx, "tool.settled", { step: call.step, place: call.place, tool: call.tool, state: "unknown" });
    });
  }

  async #intendIn(tx: Tx, call: NewCall, approval: string | null): Promise<void> {
    await noteCall(tx, call, "intended", approval);
    await this.#tell(tx, "tool.called", { step: call.step, place: call.place, tool: call.tool, effect: call.effect });
  }

  async #waitIn(tx: Tx, call: NewCall, tasks: readonly string[]): Promise<void> {
    await noteWaitingCall(tx, call, tasks);
    const { step, place, tool, effect } = call;
    await this.#tell(tx, "tool.called", { step, place, tool, effect, tasks });
  }

  async #settleIn(tx: Tx, call: NewCall, { result, labels = [], told }: CallEnd, ms: number): Promise<void> {
    await endCall(tx, call, "done", result, labels);
    const { step, place, tool } = call;
    await this.#tell(tx, "tool.settled", {
      step,
      place,
      tool,
      state: "done",
      failed: result.failed,
      ms,
      ...(labels.length ? { labels } : {}),
      ...told,
    });
  }

  #owned<T>(label: string, body: (tx: Tx) => Promise<T>, lasts?: Lasts): Promise<T> {
    const { store } = this.#parts;
    return store.transact(
      label,
      async (tx) => {
        this.refuseGaps();
        // A turn that comes further each time may be taken up as often as it takes; its steps are limited.
        await store.queue.progressed(tx, this.#claim);
        return body(tx);
      },
      "locked",
      lasts,
    );
  }

  #tell(
    tx: Tx,
    type: "model.answered" | "tool.called" | "tool.settled" | "tool.refused" | "turn.steered" | "turn.compacted" | "budget.refused",
    data: unknown,
  ) {
    const { store } = this.#parts;
    return store.ledger.append(tx, { type, actor: this.#run.agent, subject: ["run", this.#run.id], causedBy: this.#causedBy, data });
  }
}
