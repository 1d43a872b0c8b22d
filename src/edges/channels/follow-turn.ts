import { setTimeout as sleep } from "node:timers/promises";
import type { Address } from "../../deciders/routing/address.ts";
import type { Sender } from "../../drivers/dispatch/deliver-reply.ts";
import type { ShownTurn, TurnSeen } from "../../drivers/dispatch/prepare-turn.ts";
import { type ChatPlace, type Mark, SendTrouble } from "../../kernel/channel.ts";
import { messageOf } from "../../kernel/failure.ts";
import { firstOf } from "../../kernel/first-of.ts";
import type { Live } from "../../kernel/live.ts";
import type { Log } from "../../kernel/log.ts";
import type { RunInput } from "../../records/sessions/runs.ts";
import { type DraftParts, TurnDraft } from "./follow-turn-draft.ts";
import { GrowingText } from "./follow-turn-text.ts";

export interface FollowParts extends DraftParts {
  readonly live: Live;
  readonly log: Log;
  /** How long the turn waits for the edit that is on its way. */
  readonly quietMs: number;
  delivers(address: Address): boolean;
  senderOf(address: Address): Promise<Sender | undefined>;
}

/** How long a request may take that nobody waits for. */
const CALL_MS = 10_000;
const MAX_FAILURES = 3;
const LATER_MS = 5_000;
/** The platform shows it a little longer than until it is told again. */
const TYPING_SHARE = 0.8;
/** What is answered sooner needs no word before it, and of those every platform takes only so many. */
const TYPING_AFTER_MS = 400;
/** Made once: an abort without a reason makes one, with all its callers in it. */
const OVER = new Error("the turn is over");
const MARKS = { answered: "done", failed: "failed", stopped: null } as const;

/** Lets people see that a turn runs, in the chats that channels of ours serve: that somebody types, what it says so far, what was seen. */
export function followTurns(parts: FollowParts): (run: RunInput) => ShownTurn | undefined {
  return (run) => (run.task === null && parts.delivers(run.address) ? new FollowedTurn(parts, run) : undefined);
}

/** One attempt of a turn. Nothing here throws into the turn, or keeps it waiting but for the edit that is on its way at its end. */
class FollowedTurn implements ShownTurn {
  readonly #parts: FollowParts;
  readonly #run: RunInput;
  readonly #place: ChatPlace;
  /** Nothing more is begun. */
  readonly #ending = new AbortController();
  /** What is on its way is given up. */
  readonly #cut = new AbortController();
  readonly #text = new GrowingText();
  readonly #sender: Promise<Sender | undefined>;
  #draft: TurnDraft | undefined;
  #typing: NodeJS.Timeout | undefined;
  /** An edit was given up, and nobody knows when it will be seen. */
  #mayComeLate = false;
  #showing: Promise<void> = Promise.resolve();
  #marking: Promise<void> = Promise.resolve();

  constructor(parts: FollowParts, run: RunInput) {
    this.#parts = parts;
    this.#run = run;
    const { guild, chat, topic, chatType } = run.address;
    this.#place = { guild, chat, topic, chatType };
    this.#sender = parts.senderOf(run.address).catch((error: unknown) => this.#complain("a turn cannot be shown", error));
    void this.#begin();
  }

  async quiet(how: "ends" | "waits"): Promise<void> {
    this.#end();
    if (this.#draft) {
      const last = this.#showing.then(() => (how === "waits" ? this.#saysThatItWaits() : undefined));
      const enough = new AbortController();
      await Promise.race([last, sleep(this.#parts.quietMs, undefined, { ref: false, signal: enough.signal }).catch(() => {})]);
      enough.abort(OVER);
    }
    this.#mayComeLate = this.#draft?.isBusy === true;
    this.#cut.abort(OVER);
  }

  over(end: TurnSeen): void {
    this.#end();
    if (this.#draft?.isBusy || this.#mayComeLate)
      void this.#draft
        ?.mend((run) => this.#call(null, run))
        .catch((error: unknown) => this.#complain("a reply may show what it said before", error));
    if (end !== null && end !== "waits") this.#mark(MARKS[end]);
  }

  #end(): void {
    clearTimeout(this.#typing);
    this.#ending.abort(OVER);
  }

  async #begin(): Promise<void> {
    const sender = await this.#sender;
    if (!sender || this.#ending.signal.aborted) return;
    const { channel, account } = sender;
    this.#mark("seen");
    const { typingMs } = channel.abilities;
    if (channel.typing && typingMs !== undefined)
      this.#typing = setTimeout(() => void this.#type(sender, typingMs * TYPING_SHARE), TYPING_AFTER_MS).unref();
    // Whoever wants everything at most once is sent nothing of which nobody might know whether it has arrived.
    const isSafe = channel.abilities.dedupes || account.delivery === "at_least_once";
    const every = channel.abilities.editEveryMs;
    if (account.stream && isSafe && channel.edit && every !== undefined) this.#showing = this.#show(sender, every);
  }

  async #type({ channel, pausedMs }: Sender, everyMs: number): Promise<void> {
    const { signal } = this.#ending;
    try {
      while (!signal.aborted) {
        if (pausedMs() === 0)
          await this.#call(signal, async (within) => channel.typing?.(this.#place, within, this.#run.origin?.messageId));
        await sleep(everyMs, undefined, { signal, ref: false });
      }
    } catch (error) {
      if (!signal.aborted) this.#complain("nobody sees that an agent types", error);
    }
  }

  /** One after another: what was seen is not seen again after it was done. */
  #mark(mark: Mark | null): void {
    const marking = this.#marking.then(async () => {
      const sender = await this.#sender;
      const { origin, address } = this.#run;
      if (!sender?.channel.react || !sender.channel.abilities.reacts || !origin || sender.pausedMs() > 0) return;
      const { receipts } = sender.account;
      if (receipts === "none" || (receipts === "groups" && address.chatType === "dm")) return;
      await this.#call(null, async (within) => sender.channel.react?.(this.#place, origin.messageId, mark, within));
    });
    this.#marking = marking.catch((error: unknown) => this.#complain("a message could not be marked", error));
  }

  /** The text as it grows, at most so often; what comes meanwhile is shown together. */
  async #show(sender: Sender, everyMs: number): Promise<void> {
    const { signal } = this.#ending;
    this.#draft = new TurnDraft(this.#parts, this.#run, this.#place, sender, (run) => this.#call(this.#cut.signal, run));
    void this.#text.follow(this.#parts.live.listen(this.#run.id, signal));
    const wake = (): void => this.#text.wake();
    signal.addEventListener("abort", wake, { once: true });
    try {
      for (let failures = 0; failures < MAX_FAILURES && !signal.aborted; ) {
        await this.#text.changed();
        await sleep(Math.max(everyMs, sender.pausedMs()), undefined, { signal, ref: false });
        failures = (await this.#put(sender, this.#draft)) ? 0 : failures + 1;
      }
    } catch (error) {
      if (!signal.aborted) this.#complain("a turn is not shown any more", error);
    }
    signal.removeEventListener("abort", wake);
  }

  /** False: it is worth another try, later. */
  async #put(sender: Sender, draft: TurnDraft): Promise<boolean> {
    try {
      await draft.put(this.#text.shown(), this.#text.said);
      return true;
    } catch (error) {
      const trouble = error instanceof SendTrouble ? error : new SendTrouble("unclear", messageOf(error), { cause: error });
      const waits = trouble.afterMs ?? LATER_MS;
      if (trouble.isWhole) sender.pause(waits);
      if (trouble.kind === "refused" || draft.isUnclear) throw trouble;
      await sleep(waits, undefined, { signal: this.#ending.signal, ref: false });
      this.#text.wake();
      return false;
    }
  }

  async #saysThatItWaits(): Promise<void> {
    const { said } = this.#text;
    if (!this.#draft?.isShown || said === "") return;
    await this.#draft.put(`${said}\n\n(waiting)`, said).catch((error: unknown) => this.#complain("nobody sees that a turn waits", error));
  }

  /** Whether it listens to its signal or not. */
  async #call<T>(signal: AbortSignal | null, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const ending = firstOf(signal ? [signal] : [], CALL_MS);
    const { promise: over, reject } = Promise.withResolvers<never>();
    ending.signal.addEventListener("abort", () => reject(ending.signal.reason), { once: true });
    if (ending.signal.aborted) reject(ending.signal.reason);
    try {
      return await Promise.race([run(ending.signal), over]);
    } finally {
      ending.over();
    }
  }

  #complain(what: string, error: unknown): undefined {
    const { platform, account } = this.#run.address;
    this.#parts.log.debug?.(what, { platform, account, run: this.#run.id, error: messageOf(error) });
    return undefined;
  }
}
