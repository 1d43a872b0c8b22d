import { randomFillSync } from "node:crypto";

/** Randomness is handed in, so that a simulation replays from its seed. */
export interface Random {
  /** A number in [0, 1). */
  fraction(): number;
  bytes(count: number): Uint8Array;
}

export const systemRandom: Random = {
  fraction: () => Math.random(),
  bytes: (count) => randomFillSync(new Uint8Array(count)),
};

/** Mulberry32: small, fast, good enough for schedules and test data; never for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return { fraction: next, bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(next() * 256)) };
}

/** Full jitter around an exponential: half of the step is certain, half is random, so that retries of a crowd spread out. */
export function jitteredBackoff(attempt: number, random: Random, baseMs: number, maxMs: number): number {
  const step = Math.min(maxMs, baseMs * 2 ** Math.max(0, attempt - 1));
  return Math.round(step / 2 + random.fraction() * (step / 2));
}
