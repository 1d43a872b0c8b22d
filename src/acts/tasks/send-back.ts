import type { Label } from "../../kernel/label.ts";
import { addStep, type Response, type Steered, type Step } from "../../records/journal/steps.ts";
import type { RunInput } from "../../records/sessions/runs.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";
import type { TurnJournal } from "../turn-journal.ts";
import type { Judgement } from "./judgement.ts";

interface Turn {
  readonly run: RunInput;
  readonly journal: TurnJournal;
  readonly steps: readonly Step[];
  /** The answer, not recorded yet. */
  readonly last: { readonly step: number; readonly response: Response } | null;
}

export interface WentBack {
  /** Everything that the turn has done, the answer and what it was told among it. */
  readonly steps: readonly Step[];
  readonly labels: readonly Label[];
}

/**
 * The turn goes on: its answer and what the gateway says about it are part of its journal, both or neither, so that whoever takes the turn over
 * goes on from there.
 */
export async function sendBackIn(
  store: Store,
  tx: Tx,
  { run, journal, steps, last }: Turn,
  { why, text, labels }: Judgement & { readonly kind: "goes on" },
  causedBy: number,
): Promise<WentBack> {
  const cause = last ? await journal.responseIn(tx, last.step, last.response) : causedBy;
  const said: Steered = { from: "guildhall", text, run: null, gateway: why };
  const step = (last?.step ?? steps.at(-1)?.step ?? 0) + 1;
  await addStep(tx, run.id, step, { kind: "steered", body: [said] }, labels);
  const data = { step, gateway: why };
  await store.ledger.append(tx, { type: "turn.steered", actor: run.agent, subject: ["run", run.id], causedBy: cause, data });
  if (last) await journal.usageIn(tx, last.step, last.response);
  const answer: Step[] = last ? [{ kind: "response", step: last.step, response: last.response, calls: [], labels: [], at: 0 }] : [];
  return { steps: [...steps, ...answer, { kind: "steered", step, said: [said], labels, at: 0 }], labels };
}
