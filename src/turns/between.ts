import { steerTurn } from "../acts/steer-turn.ts";
import type { TurnJournal } from "../acts/turn-journal.ts";
import type { Caller } from "../kernel/caller.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { Label } from "../kernel/label.ts";
import type { Step } from "../records/journal/steps.ts";
import type { RunInput } from "../records/sessions/runs.ts";
import type { Store } from "../store/store.ts";
import type { Emit } from "./ask-model.ts";
import { type CompactionParts, makeRoom } from "./compact.ts";

export interface BetweenParts {
  readonly store: Store;
  readonly journal: TurnJournal;
  readonly run: RunInput;
  /** The agent in its turn. */
  readonly caller: Caller;
  /** Of the turn; what reaches it adds to them. */
  readonly labels: Set<Label>;
  readonly emit: Emit;
  readonly compaction: CompactionParts;
  readonly reached: ReachedPoint;
}

/** Before the model is asked: takes in what has reached the turn since its last answer, and makes room. Answers the steps this has added. */
export async function between(parts: BetweenParts, steps: readonly Step[]): Promise<readonly Step[]> {
  const steered = await steer(parts, steps);
  const made = await makeRoom(parts.compaction, [...steps, ...steered]);
  if (made.length > 0) parts.reached("turn.compacted");
  return [...steered, ...made];
}

/** Before the first answer the message itself is new enough. */
async function steer({ run, caller, labels, emit, reached, ...parts }: BetweenParts, steps: readonly Step[]): Promise<Step[]> {
  if (!steps.some(({ kind }) => kind === "response")) return [];
  const step = (steps.at(-1)?.step ?? 0) + 1;
  const taken = await steerTurn(parts, run, caller, step);
  if (taken === null) return [];
  reached("turn.steered");
  for (const label of taken.labels) labels.add(label);
  for (const { from } of taken.said) emit({ kind: "note", text: `taken in while it works: words from ${from}` });
  return [{ kind: "steered", step, said: taken.said, labels: taken.labels, at: 0 }];
}
