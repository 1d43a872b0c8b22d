import { badRequest, Refusal } from "./telegram-answer.ts";

interface Waiting {
  readonly timer: NodeJS.Timeout;
  readonly answer: (result: readonly object[] | Refusal) => void;
}

/** Kinds that come only to who asks for them. */
const ON_REQUEST = new Set(["message_reaction", "message_reaction_count", "chat_member"]);

/** What waits for the bot: kept until it is confirmed by asking for something after it. One poll at a time, and no poll beside a webhook. */
export class UpdateQueue {
  readonly #complain: (problem: string) => void;
  #updates: { readonly update_id: number }[] = [];
  #nextId = 870_000_001;
  #allowed: readonly string[] = [];
  #waiting: Waiting | undefined;
  webhook = "";
  /** When somebody has asked for what is new, last. */
  polledAt = Number.NEGATIVE_INFINITY;

  constructor(complain: (problem: string) => void) {
    this.#complain = complain;
  }

  /** Those that the bot has not confirmed. */
  get unconfirmed(): number {
    return this.#updates.length;
  }

  add(kind: string, content: object): void {
    if (this.#allowed.length > 0 ? !this.#allowed.includes(kind) : ON_REQUEST.has(kind)) return;
    this.#updates.push({ update_id: this.#nextId++, [kind]: content });
    this.#end((limit) => this.#updates.slice(0, limit));
  }

  /** Whoever has polled goes away unanswered when `gone` is called. */
  poll(fields: Readonly<Record<string, unknown>>, answer: Waiting["answer"]): { gone(): void } {
    this.polledAt = performance.now();
    const { offset = 0, limit = 100, timeout = 0, allowed_updates: allowed } = fields;
    const isNumber = (value: unknown): value is number => Number.isInteger(value);
    if (!isNumber(offset) || !isNumber(limit) || !isNumber(timeout)) return refuse(answer, badRequest("wrong parameters"));
    if (this.webhook !== "") {
      this.#complain("polls while a webhook is set");
      const words = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
      return refuse(answer, new Refusal(409, words));
    }
    if (this.#waiting) {
      this.#complain("two poll at once");
      const words = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
      this.#end(() => new Refusal(409, words));
    }
    if (Array.isArray(allowed)) this.#allowed = allowed;
    if (offset > this.#nextId) this.#complain("confirms what it was never sent");
    if (offset < 0) this.#complain("forgets updates that it has not seen");
    this.#updates = offset < 0 ? this.#updates.slice(offset) : this.#updates.filter(({ update_id: id }) => id >= offset);
    this.#limit = Math.min(100, Math.max(1, limit));
    if (this.#updates.length > 0 || timeout <= 0) {
      answer(this.#updates.slice(0, this.#limit));
      return { gone: () => {} };
    }
    const waiting: Waiting = { answer, timer: setTimeout(() => this.#end(() => []), Math.min(50, timeout) * 1_000) };
    this.#waiting = waiting;
    return {
      gone: () => {
        clearTimeout(waiting.timer);
        if (this.#waiting === waiting) this.#waiting = undefined;
      },
    };
  }

  #limit = 100;

  #end(result: (limit: number) => readonly object[] | Refusal): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    this.#waiting = undefined;
    clearTimeout(waiting.timer);
    waiting.answer(result(this.#limit));
  }
}

function refuse(answer: Waiting["answer"], refusal: Refusal): { gone(): void } {
  answer(refusal);
  return { gone: () => {} };
}
