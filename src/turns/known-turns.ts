import { canonicalJson } from "../kernel/canonical-json.ts";
import type { ModelMessage } from "../kernel/model.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import { READ_BYTES } from "../records/sessions/transcript.ts";
import type { Reads } from "../store/engine.ts";
import { JOURNAL_BYTES, type PastPart, type PastTurn, type PastTurns, READ_ENTRIES, readPastTurns } from "./past-turns.ts";

/** What is kept in characters, of all conversations together and of one; each conversation and each message counts as some more. */
const KEPT_CHARACTERS = 8_000_000;
const KEPT_OF_ONE = 500_000;
const PER_CONVERSATION = 1_000;
const PER_MESSAGE = 200;
/** No character takes more in UTF-8. */
const BYTES_AT_MOST = 3;

interface Known {
  /** Which part of the conversation it is. */
  readonly mark: string;
  readonly past: PastTurns;
  readonly size: number;
}

/**
 * What conversations were told last of their past, so that the next turn reads only what was said since, on whatever node. Turns that have ended
 * do not change, and none is ever put before another.
 */
export class KnownTurns {
  /** By session; those first that were not asked for longest. */
  readonly #known = new Map<string, Known>();
  readonly #written = new WeakMap<ModelMessage, string>();
  #size = 0;

  /** All from one position on, as `readPastTurns` reads them. */
  async read(reads: Reads, run: RunInput, part: Omit<PastPart, "upto">): Promise<PastTurns> {
    const mark = JSON.stringify([run.epoch, part.after, part.inside, part.withTools]);
    const upto = Number.MAX_SAFE_INTEGER;
    const known = this.#known.get(run.sessionKey);
    if (known?.mark === mark) {
      const since = await readPastTurns(reads, run, { ...part, after: known.past.upto, upto });
      if (since.entries === 0) return known.past;
      const past = joined(known.past, since);
      if (past) return this.#keep(run.sessionKey, { mark, past, size: known.size + this.#write(since.turns) });
    }
    const past = await readPastTurns(reads, run, { ...part, upto });
    return this.#keep(run.sessionKey, { mark, past, size: PER_CONVERSATION + this.#write(past.turns) });
  }

  /** One of their messages as canonical JSON, which goes into the hash of every request. */
  written(message: ModelMessage): string | undefined {
    return this.#written.get(message);
  }

  #keep(sessionKey: string, known: Known): PastTurns {
    const { past, size } = known;
    if (past.cut || past.entries === 0 || size > KEPT_OF_ONE) {
      this.#forget(sessionKey);
      return past;
    }
    this.#forget(sessionKey);
    this.#size += size;
    this.#known.set(sessionKey, known);
    for (const oldest of this.#known.keys()) {
      if (this.#size <= KEPT_CHARACTERS) break;
      this.#forget(oldest);
    }
    return past;
  }

  #forget(sessionKey: string): void {
    this.#size -= this.#known.get(sessionKey)?.size ?? 0;
    this.#known.delete(sessionKey);
  }

  #write(turns: readonly PastTurn[]): number {
    let size = 0;
    for (const { messages } of turns)
      for (const message of messages) {
        // In one piece: a text that was put together holds on to all its pieces. JSON is well-formed, whatever was said.
        const written = Buffer.from(canonicalJson(message)).toString();
        this.#written.set(message, written);
        size += written.length + PER_MESSAGE;
      }
    return size;
  }
}

/** Undefined: read together they might be cut, or told as one. */
function joined(known: PastTurns, since: PastTurns): PastTurns | undefined {
  const entries = known.entries + since.entries;
  const characters = known.characters + since.characters;
  const journal = known.journal + since.journal;
  if (since.cut || entries > READ_ENTRIES || characters * BYTES_AT_MOST > READ_BYTES || journal > JOURNAL_BYTES) return undefined;
  if (since.turns.some(({ run }) => known.turns.some((turn) => turn.run === run))) return undefined;
  return { turns: [...known.turns, ...since.turns], upto: since.upto, cut: false, entries, characters, journal };
}
