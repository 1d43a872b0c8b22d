import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Crockford's alphabet without look-alikes: an id can be read out on the phone, and a prefix of it can be typed. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

const DRAWN_AT_ONCE = 1_024;

export type NewId = () => string;

interface Moment {
  readonly time: number;
  readonly chance: Uint8Array;
}

/**
 * Ids of 20 characters: 9 of time (sortable by creation), 11 of chance (55 bits).
 * Time first keeps index inserts at one end of the tree; chance makes ids unguessable enough not to collide across nodes.
 * Those of one source rise, also within a millisecond: whoever lists by id lists what was made in the order in which it was made.
 */
export function idSource(clock: Clock, source: Random): NewId {
  const random = drawn(source);
  let last: Moment = { time: Number.NEGATIVE_INFINITY, chance: new Uint8Array(11) };
  return () => {
    const time = clock.now();
    last = time > last.time ? { time, chance: random.bytes(11).map((byte) => byte & 31) } : following(last.time, last.chance, random);
    return written(last.time, 9) + [...last.chance].map((digit) => ALPHABET[digit]).join("");
  };
}

/** Drawn many at a time: to ask the system for a few bytes takes as long as for a thousand, and longer than all the rest of an id. */
function drawn(source: Random): Pick<Random, "bytes"> {
  let pool: Uint8Array = new Uint8Array(0);
  let used = 0;
  return {
    bytes: (count) => {
      if (used + count > pool.length) [pool, used] = [source.bytes(DRAWN_AT_ONCE), 0];
      used += count;
      return pool.slice(used - count, used);
    },
  };
}

/** A later one of the same moment, by a step of chance. */
function following(time: number, chance: Uint8Array, random: Pick<Random, "bytes">): Moment {
  const next = Uint8Array.from(chance);
  let carry = 1 + new DataView(random.bytes(4).buffer).getUint32(0);
  for (let index = next.length - 1; carry > 0 && index >= 0; index--) {
    const sum = (next[index] as number) + carry;
    next[index] = sum % 32;
    carry = Math.floor(sum / 32);
  }
  return carry > 0 ? { time: time + 1, chance: next } : { time, chance: next };
}

function written(time: number, digits: number): string {
  let rest = time;
  let text = "";
  for (let index = 0; index < digits; index++) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}
