import { setTimeout as sleep } from "node:timers/promises";
import type { ChannelAccount } from "../../contract/channels.ts";
import type { Receive } from "../../drivers/intake/receive.ts";
import { type Channel, ChannelTrouble } from "../../kernel/channel.ts";
import { asFailure, isFailure, messageOf } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import { jitteredBackoff, type Random } from "../../kernel/random.ts";
import {
  type AccountName,
  type AccountState,
  accountLease,
  keepCursor,
  readCursor,
  tellState,
} from "../../records/channels/channel-accounts.ts";
import type { Store } from "../../store/store.ts";
import type { AccountLeases } from "./account-leases.ts";
import type { HeldAccount } from "./held-account.ts";

export interface RunnerParts {
  readonly store: Store;
  readonly node: string;
  readonly log: Log;
  readonly random: Random;
  readonly receive: Receive;
  readonly leases: AccountLeases;
}

const BACKOFF_MS = 1_000;
const BACKOFF_MAX_MS = 60_000;
/** Only the operator can help: it is tried again all the same, since a token may be made valid elsewhere. */
const REFUSED_MS = 60_000;
/** After something that should not happen. */
const AGAIN_MS = 2_000;
/** How long a channel that was told to end may take; then it is left alone. */
const ENDING_MS = 3_000;

/**
 * Keeps one account connected, on one node at a time.
 *
 *   waits for the lease → waits for what the last holder has left at the platform → connecting → connected ⇄ cut off | refused → …
 *   → off (the lease is given back, once nothing of ours goes on)
 *
 * Whatever goes wrong with it stays with it: nobody waits for this loop.
 */
export class AccountRunner {
  readonly #parts: RunnerParts;
  readonly #name: AccountName;
  readonly #current: () => ChannelAccount;
  readonly #open: () => Promise<Channel>;
  readonly #stopping = new AbortController();
  #said = "";
  /** One after another: what is said last must be what stays. */
  #telling: Promise<void> = Promise.resolve();
  #loop: Promise<void> | undefined;
  /** The channel was told to end, and has not. */
  #isDeaf = false;

  /** `current`: the account as the config has it now; who may speak may change without a new connection. */
  constructor(parts: RunnerParts, name: AccountName, current: () => ChannelAccount, open: () => Promise<Channel>) {
    this.#parts = parts;
    this.#name = { platform: name.platform, account: name.account };
    this.#current = current;
    this.#open = open;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { leases, log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const held = await leases.wait(this.#name, signal);
        if (held) await this.#hold(held);
      } catch (error) {
        const { code, message } = asFailure(error);
        log.warn("an account cannot be held; trying again", { ...this.#name, code, error: message });
        await sleep(AGAIN_MS, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #hold(held: HeldAccount): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    const reasons = [this.#stopping.signal, held.lost];
    for (const reason of reasons) reason.addEventListener("abort", end, { once: true });
    if (reasons.some(({ aborted }) => aborted)) end();
    this.#isDeaf = false;
    try {
      for (let attempt = 1; !ending.signal.aborted; attempt++) {
        const waits = await this.#connect(held, attempt, ending.signal, () => {
          attempt = 0;
        });
        await sleep(waits, undefined, { signal: ending.signal }).catch(() => {});
      }
      await this.#tell(held.fence, { state: "off", problem: null, name: null, node: null });
    } finally {
      for (const reason of reasons) reason.removeEventListener("abort", end);
      await held.end(!this.#isDeaf);
    }
  }

  /** Until the connection ends. Answers how long to wait before the next. */
  async #connect(held: HeldAccount, attempt: number, signal: AbortSignal, worked: () => void): Promise<number> {
    const { store, node, random } = this.#parts;
    const { fence } = held;
    try {
      await this.#tell(fence, { state: "connecting", problem: null, name: null, node });
      const channel = await this.#open();
      await this.#outlast(held, channel, signal);
      const cursor = await readCursor(store.read, this.#name);
      if (!held.stillOurs() || signal.aborted) return 0;
      const listening = channel.listen(
        {
          cursor,
          stillOurs: () => held.stillOurs(),
          take: (messages, next) =>
            this.#parts.receive(this.#current(), messages, async (tx, isAll) => {
              await store.leases.guard(tx, accountLease(this.#name), fence);
              if (isAll && next !== undefined) await keepCursor(tx, this.#name, next);
            }),
          connected: (name) => {
            worked();
            void this.#tell(fence, { state: "connected", problem: null, name, node });
          },
          disconnected: (problem) => void this.#tell(fence, { state: "cut off", problem, name: null, node }),
        },
        signal,
      );
      await this.#untilEnded(listening, signal);
      if (signal.aborted) return 0;
      throw new ChannelTrouble("cut off", "the platform has ended the connection");
    } catch (error) {
      if (signal.aborted || isFailure(error, "fence.stale")) return 0;
      // A name that no channel has is the operator's to correct: trying again does not help.
      const kind = isFailure(error, "channel.unknown") ? "refused" : "cut off";
      const trouble = error instanceof ChannelTrouble ? error : new ChannelTrouble(kind, messageOf(error), { cause: error });
      await this.#tell(fence, { state: trouble.kind, problem: trouble.message, name: null, node });
      if (trouble.afterMs !== null) return trouble.afterMs;
      return trouble.kind === "refused" ? REFUSED_MS : jitteredBackoff(attempt, random, BACKOFF_MS, BACKOFF_MAX_MS);
    }
  }

  /** What a holder that is gone has asked last may still wait at the platform. */
  async #outlast(held: HeldAccount, channel: Channel, signal: AbortSignal): Promise<void> {
    const ms = held.waitMs(channel.abilities.lingersMs ?? 0);
    if (ms === 0) return;
    this.#parts.log.info("an account is taken over from a node that has not given it back; it is connected in a moment", {
      ...this.#name,
      ms,
    });
    await sleep(ms, undefined, { signal }).catch(() => {});
  }

  /** One that does not end when it is told to keeps nobody waiting: what it still takes is refused, since its fence is old. */
  async #untilEnded(listening: Promise<void>, signal: AbortSignal): Promise<void> {
    const { promise: left, reject } = Promise.withResolvers<never>();
    let timer: NodeJS.Timeout | undefined;
    const leave = (): void => {
      timer = setTimeout(() => {
        this.#parts.log.warn("a channel does not end", { ...this.#name });
        this.#isDeaf = true;
        reject(new ChannelTrouble("cut off", "it does not end"));
      }, ENDING_MS);
    };
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      await Promise.race([listening, left]);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    }
  }

  /** What has not changed is not said again. */
  #tell(fence: number, now: AccountState): Promise<void> {
    const said = JSON.stringify([fence, now]);
    // Every attempt connects; only what comes of it is worth a word.
    if (said === this.#said || (now.state === "connecting" && this.#said !== "")) return this.#telling;
    this.#said = said;
    const { state, problem } = now;
    if (problem !== null) this.#parts.log.warn("a channel does not work", { ...this.#name, state, problem });
    this.#telling = this.#telling.then(() => this.#keep(fence, now));
    return this.#telling;
  }

  /** Refused to whoever does not hold the account any more: another may have said something newer. */
  async #keep(fence: number, now: AccountState): Promise<void> {
    const { store, log } = this.#parts;
    const { state, problem } = now;
    try {
      await store.transact("channel state", async (tx) => {
        await store.leases.guard(tx, accountLease(this.#name), fence);
        await tellState(tx, this.#name, now);
        if (state === "connecting") return;
        const subject = ["channel", this.#name.platform, this.#name.account];
        const type = state === "connected" ? "channel.connected" : "channel.lost";
        await store.ledger.append(tx, { type, actor: "guildhall", subject, data: { state, problem, name: now.name } });
      });
    } catch (error) {
      this.#said = "";
      if (!isFailure(error, "fence.stale"))
        log.warn("the state of a channel could not be kept", { ...this.#name, error: messageOf(error) });
    }
  }
}
