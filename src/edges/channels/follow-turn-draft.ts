import { setTimeout as sleep } from "node:timers/promises";
import { type Draft, dropDraft, intendDraft, noteDraft, recordDraft } from "../../acts/draft-reply.ts";
import type { Sender } from "../../drivers/dispatch/deliver-reply.ts";
import { type ChatPlace, type Outbound, type Part, SendTrouble } from "../../kernel/channel.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { NewId } from "../../kernel/ids.ts";
import { readReply } from "../../records/sessions/outbox.ts";
import type { RunInput } from "../../records/sessions/runs.ts";
import type { Store } from "../../store/store.ts";

export interface DraftParts {
  readonly store: Store;
  readonly newId: NewId;
  readonly clock: Clock;
}

/** Does something at the platform, for as long as it may take. */
type Call = <T>(run: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** How often what is shown is written down, for the case that the turn ends without a word. */
const NOTE_MS = 5_000;
const LOOKS = 20;
const LOOK_MS = 250;

/** The message that shows a turn while it runs: sent once, whoever goes on with the turn, and edited from then on. */
export class TurnDraft {
  readonly #parts: DraftParts;
  readonly #run: RunInput;
  readonly #place: ChatPlace;
  readonly #sender: Sender;
  readonly #call: Call;
  #draft: Draft | undefined;
  #shown = "";
  #notedAt = 0;
  #last: Promise<unknown> = Promise.resolve();
  #isBusy = false;

  constructor(parts: DraftParts, run: RunInput, place: ChatPlace, sender: Sender, call: Call) {
    this.#parts = parts;
    this.#run = run;
    this.#place = place;
    this.#sender = sender;
    this.#call = call;
  }

  /** A request is on its way. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Trying again can only do harm: nobody knows whether there is such a message. */
  get isUnclear(): boolean {
    return this.#draft !== undefined && this.#draft.shown === null;
  }

  get isShown(): boolean {
    return this.#draft !== undefined && this.#draft.shown !== null;
  }

  /** `said`: what it says without a word about what comes. */
  async put(text: string, said: string): Promise<void> {
    const part = this.#sender.channel.partsOf(text)[0];
    if (!part || part.text === this.#shown) return;
    this.#isBusy = true;
    const putting = this.#draft ? this.#edit(this.#draft, part) : this.#open(part, said);
    this.#last = putting.catch(() => {});
    try {
      await putting;
      this.#shown = part.text;
      await this.#note(said);
    } finally {
      this.#isBusy = false;
    }
  }

  /**
   * The turn has ended while an edit was on its way, which may come after the last word. Once nothing more can come, the last word is
   * said again.
   */
  async mend(call: Call): Promise<void> {
    const { store } = this.#parts;
    await this.#last;
    const draft = this.#draft;
    if (!draft?.shown) return;
    for (let look = 0; look < LOOKS; look++) {
      const reply = await readReply(store.read, draft.id);
      if (reply?.state === "sent" && reply.sent[0] === draft.shown) {
        const part = this.#sender.channel.partsOf(reply.text)[0];
        if (part) await this.#edit(draft, part, call);
      }
      if (reply?.state !== "pending") return;
      await sleep(LOOK_MS, undefined, { ref: false });
    }
  }

  async #open(part: Part, said: string): Promise<void> {
    const { store, newId, clock } = this.#parts;
    const { id: runId, address, origin } = this.#run;
    const draft = await intendDraft(store, newId, { runId, address, text: said, answers: origin?.messageId ?? null });
    if (!draft) throw new SendTrouble("refused", "the turn does not run any more");
    this.#draft = draft;
    if (!draft.isNew) return this.#edit(draft, part);
    this.#notedAt = clock.now();
    try {
      const { id } = await this.#call((signal) => this.#sender.channel.send(this.#message(draft, part), signal));
      this.#draft = { ...draft, shown: id };
      await recordDraft(store, draft.id, id);
    } catch (error) {
      if (error instanceof SendTrouble && error.kind !== "unclear") {
        this.#draft = undefined;
        await dropDraft(store, draft.id);
      }
      throw error;
    }
  }

  async #edit(draft: Draft, part: Part, call = this.#call): Promise<void> {
    const { shown } = draft;
    if (shown === null) throw new SendTrouble("refused", "nobody knows whether there is anything to edit");
    await call(async (signal) => this.#sender.channel.edit?.(this.#message(draft, part), shown, signal));
  }

  #message({ id }: Draft, part: Part): Outbound {
    const { address, origin } = this.#run;
    return { place: this.#place, key: `${id}:0`, part, answers: address.chatType === "dm" ? null : (origin?.messageId ?? null) };
  }

  async #note(said: string): Promise<void> {
    const { store, clock } = this.#parts;
    if (!this.#draft || clock.now() - this.#notedAt < NOTE_MS) return;
    this.#notedAt = clock.now();
    await noteDraft(store, this.#draft.id, said);
  }
}
