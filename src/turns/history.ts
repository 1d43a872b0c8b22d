import type { StoredContext } from "../records/journal/contexts.ts";
import { readStep } from "../records/journal/steps.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import type { Reads } from "../store/engine.ts";
import type { KnownTurns } from "./known-turns.ts";
import { type PastPart, type PastTurn, readPastTurns } from "./past-turns.ts";

/** The conversation before a turn. */
export interface History {
  readonly summary: string | null;
  readonly omitted: boolean;
  readonly turns: readonly PastTurn[];
}

/** Where it begins and ends, so that whoever takes the turn up again tells the same. */
export type HistoryBounds = Pick<StoredContext, "after" | "upto" | "summary" | "omitted">;

export const NO_HISTORY: History = { summary: null, omitted: false, turns: [] };

/** The newest part of the conversation that has room, from the last summary on; and its bounds. */
export async function newestHistory(
  known: KnownTurns,
  reads: Reads,
  run: RunInput,
  summary: NonNullable<StoredContext["summary"]> | null,
  withTools: boolean,
  room: number,
): Promise<{ readonly history: History; readonly bounds: HistoryBounds }> {
  const start = await startOf(reads, run, summary);
  const whole = await known.read(reads, run, { after: start.after, inside: start.inside, withTools });
  let left = room;
  // The newest in any case: what does not fit then is the model's to refuse.
  const kept = whole.turns.toReversed().filter(({ tokens }, index) => {
    left -= tokens;
    return index === 0 || left >= 0;
  });
  const turns = kept.toReversed();
  const first = turns[0]?.position ?? start.after + 1;
  const omitted = whole.cut || turns.length < whole.turns.length;
  const bounds = { after: first - 1, upto: whole.upto, summary, omitted };
  return { history: { summary: start.text, omitted, turns }, bounds };
}

/** The same again, by the bounds that were kept. */
export async function historyOf(reads: Reads, run: RunInput, context: Pick<StoredContext, "tools"> & HistoryBounds): Promise<History> {
  const { after, upto = 0, summary = null, omitted = false } = context;
  if (run.request?.messages || (upto === 0 && summary === null)) return NO_HISTORY;
  const start = await startOf(reads, run, summary);
  const { turns } = await readPastTurns(reads, run, { after, upto, inside: start.inside, withTools: context.tools.length > 0 });
  return { summary: start.text, omitted, turns };
}

export function boundsOf({ after, upto, summary, omitted }: StoredContext): HistoryBounds {
  return {
    after,
    ...(upto === undefined ? {} : { upto }),
    ...(summary === undefined ? {} : { summary }),
    ...(omitted === undefined ? {} : { omitted }),
  };
}

interface Start {
  readonly text: string | null;
  readonly after: number;
  readonly inside: PastPart["inside"];
}

async function startOf(reads: Reads, run: RunInput, summary: StoredContext["summary"]): Promise<Start> {
  const step = summary ? await readStep(reads, summary.run, summary.step) : undefined;
  if (!summary || step?.kind !== "compacted") return { text: null, after: 0, inside: null };
  const { summary: text, from, before } = step.compaction;
  const after = (from ?? (await firstPosition(reads, run, summary.run))) - 1;
  return { text, after, inside: { run: summary.run, before } };
}

/** Of what was said in a turn. */
async function firstPosition(reads: Reads, { sessionKey, epoch }: RunInput, run: string): Promise<number> {
  const row = await reads.get<{ position: number | null }>`select min(position) as position from transcript
    where session_key = ${sessionKey} and epoch = ${epoch} and run_id = ${run}`;
  return row?.position ?? 1;
}
