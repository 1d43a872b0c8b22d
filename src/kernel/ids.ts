import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** Crockford's alphabet without look-alikes: an id can be read out on the phone, and a prefix of it can be typed. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

export type NewId = () => string;

/**
 * Ids of 20 characters: 9 of time (sortable by creation), 11 of chance (55 bits).
 * Time first keeps index inserts at one end of the tree; chance makes ids unguessable enough not to collide across nodes.
 */
export function idSource(clock: Clock, random: Random): NewId {
  return () => {
    let time = clock.now();
    let text = "";
    for (let index = 0; index < 9; index++) {
      text = ALPHABET[time % 32] + text;
      time = Math.floor(time / 32);
    }
    for (const byte of random.bytes(11)) text += ALPHABET[byte & 31];
    return text;
  };
}
