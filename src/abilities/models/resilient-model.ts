import type { Clock } from "../../kernel/clock.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import { firstOf } from "../../kernel/first-of.ts";
import type { ModelChunk, ModelRequest } from "../../kernel/model.ts";
import { jitteredBackoff, type Random } from "../../kernel/random.ts";
import type { Breaker } from "./breaker.ts";
import type { RawChunk } from "./providers/from-stream.ts";
import { SilentProvider, type Trouble } from "./providers/provider-trouble.ts";

/** How long a provider may be silent, and how often it is asked again. */
export interface Patience {
  /** Until something comes at all: local servers load a model first. */
  readonly firstMs: number;
  /** Between two signs of life. */
  readonly idleMs: number;
  readonly attempts: number;
  /** All waiting between attempts together; a provider that asks for more is not waited for. */
  readonly waitMs: number;
  /** After so long no further attempt begins. */
  readonly totalMs: number;
  /** Whether a provider that nobody asks for the moment is waited for. */
  readonly waitsForRest: boolean;
}

export const PATIENCE: Patience = {
  firstMs: 120_000,
  idleMs: 90_000,
  attempts: 4,
  waitMs: 60_000,
  totalMs: 480_000,
  waitsForRest: true,
};
/** Where another model stands ready, it is asked before long: after one silence, and at once while the provider rests. */
export const PATIENCE_WITH_NEXT: Patience = { ...PATIENCE, attempts: 3, waitMs: 10_000, totalMs: 60_000, waitsForRest: false };

const BASE_MS = 500;
const MAX_BACKOFF_MS = 15_000;

export interface Time extends Clock {
  /** Rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export interface Attempts {
  readonly name: string;
  readonly time: Time;
  readonly random: Random;
  readonly breaker: Breaker;
  readonly patience: Patience;
  /** One attempt; it stops when the signal aborts. */
  attempt(request: ModelRequest, signal: AbortSignal): AsyncGenerator<RawChunk, void, void>;
  /** What a failed attempt comes to. */
  judge(error: unknown): Trouble;
}

/** Asks until it is answered or until asking again makes no sense; what was said before a break is void. */
export async function* resilientStream(
  parts: Attempts,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelChunk, void, void> {
  const { time, random, breaker, patience } = parts;
  const began = time.now();
  let waited = 0;
  let said = false;
  for (let attempt = 1; ; ) {
    signal.throwIfAborted();
    const { admitted, waitMs, isProbe } = breaker.admit();
    let trouble: Trouble;
    if (!admitted) trouble = { failure: resting(parts.name, waitMs), passing: patience.waitsForRest, waitMs };
    else {
      let undecided = true;
      try {
        for await (const chunk of watched(parts, request, signal)) {
          if (undecided) breaker.answers(isProbe);
          undecided = false;
          if (chunk.kind === "alive") continue;
          said ||= chunk.kind !== "usage";
          yield chunk.kind === "usage" ? { ...chunk, model: chunk.model ?? parts.name } : chunk;
        }
        breaker.succeeded();
        undecided = false;
        return;
      } catch (error) {
        signal.throwIfAborted();
        trouble = parts.judge(error);
        if (trouble.passing) breaker.failed(isProbe);
        undecided &&= !trouble.passing;
      } finally {
        if (undecided) breaker.undecided(isProbe);
      }
      if (attempt++ >= patience.attempts) throw trouble.failure;
    }
    if (!trouble.passing) throw trouble.failure;
    const backoff = jitteredBackoff(attempt - 1, random, BASE_MS, MAX_BACKOFF_MS);
    // Whoever was told a time comes after it, and not all at the same moment; "at once" is not taken at its word.
    const wait = Math.max(backoff, trouble.waitMs === null ? 0 : trouble.waitMs + Math.round(random.fraction() * BASE_MS));
    waited += wait;
    if (waited > patience.waitMs || time.now() + wait - began > patience.totalMs) throw trouble.failure;
    if (said) yield { kind: "restart", because: trouble.failure.message };
    said = false;
    await time.sleep(wait, signal);
  }
}

function resting(name: string, waitMs: number): Failure {
  const seconds = Math.ceil(waitMs / 1000);
  return new Failure("model.busy", `${name}: the provider has failed several times in a row and is asked again in ${seconds} s`);
}

/** One attempt, given up when nothing comes for too long. */
async function* watched(parts: Attempts, request: ModelRequest, signal: AbortSignal): AsyncGenerator<RawChunk, void, void> {
  const { time, patience } = parts;
  const given = new AbortController();
  const watch = { heard: false, since: time.now() as number | null };
  const over = new AbortController();
  void watchdog(watch, time, patience, over.signal).then((silent) => silent && given.abort(silent));
  const ending = firstOf([signal, given.signal]);
  const stream = parts.attempt(request, ending.signal);
  try {
    for (;;) {
      watch.since = time.now();
      const next = await stream.next();
      // Whoever reads may take its time.
      watch.since = null;
      if (next.done) return;
      watch.heard = true;
      yield next.value;
    }
  } catch (error) {
    throw given.signal.aborted && !signal.aborted ? given.signal.reason : error;
  } finally {
    over.abort();
    // Whoever reads no further wants nothing more of it.
    given.abort();
    ending.over();
    void stream.return(undefined).catch(() => {});
  }
}

/** One timer for an attempt, not one for each of its chunks. Undefined: it was over before. */
async function watchdog(
  watch: { readonly heard: boolean; readonly since: number | null },
  time: Time,
  { firstMs, idleMs }: Patience,
  over: AbortSignal,
): Promise<SilentProvider | undefined> {
  while (!over.aborted) {
    const limit = watch.heard ? idleMs : firstMs;
    const left = watch.since === null ? limit : watch.since + limit - time.now();
    if (left <= 0)
      return new SilentProvider(watch.heard ? `nothing more came for ${limit / 1000} s` : `no answer within ${limit / 1000} s`);
    await time.sleep(left, over).catch(() => {});
  }
  return undefined;
}

/** Whether another model should be asked: whatever one cannot do, the next may. */
export function isForNext(error: unknown, signal: AbortSignal): error is Failure {
  return !signal.aborted && isFailure(error) && error.code.startsWith("model.");
}
