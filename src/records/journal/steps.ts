import type { Label } from "../../kernel/label.ts";
import type { ModelCall, ModelUsage } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { type CallRecord, readCalls } from "./calls.ts";

/** What a model has answered. Recorded before anything acts on it. */
export interface Response {
  readonly text: string;
  readonly calls: readonly ModelCall[];
  readonly opaque?: unknown;
  /** Which one has answered. */
  readonly model: string;
  readonly usage: ModelUsage | null;
  /** In millionths of a US dollar; null: its price is not known. */
  readonly cost: number | null;
  /** The answer reached its limit and is not whole. */
  readonly cut?: boolean;
  /** Of what the model was asked. */
  readonly requestHash: string;
}

/** Words that reached a turn while it ran. `from`: who said them; `run`: the message they came with, or null for mail. */
export interface Steered {
  readonly from: string;
  readonly text: string;
  readonly run: string | null;
}

export interface Compaction {
  /** In place of everything before it. */
  readonly summary: string;
  /** Steps before this one are part of the summary. */
  readonly before: number;
}

export type Step =
  | ({ readonly kind: "response"; readonly response: Response; readonly calls: readonly CallRecord[] } & StepPlace)
  | ({ readonly kind: "steered"; readonly said: readonly Steered[] } & StepPlace)
  | ({ readonly kind: "compacted"; readonly compaction: Compaction } & StepPlace);

interface StepPlace {
  readonly step: number;
  readonly labels: readonly Label[];
  readonly at: number;
}

export type NewStep =
  | { readonly kind: "response"; readonly body: Response }
  | { readonly kind: "steered"; readonly body: readonly Steered[] }
  | { readonly kind: "compacted"; readonly body: Compaction };

interface StepRow {
  readonly step: number;
  readonly kind: Step["kind"];
  readonly body: string;
  readonly labels: string;
  readonly at: number;
}

/** Only whoever owns the turn writes it (its work row is guarded in the same transaction), so that a number is never taken twice. */
export async function addStep(tx: Tx, runId: string, step: number, added: NewStep, labels: readonly Label[] = []): Promise<void> {
  await tx.run`insert into run_steps (run_id, step, kind, body, labels, at)
    values (${runId}, ${step}, ${added.kind}, ${JSON.stringify(added.body)}, ${labels.join(" ")}, now_ms())`;
}

/** Everything a turn has done so far, in its order. */
export async function readSteps(reads: Reads, runId: string): Promise<Step[]> {
  const rows = await reads.all<StepRow>`select step, kind, body, labels, at from run_steps where run_id = ${runId} order by step`;
  if (rows.length === 0) return [];
  const calls = Map.groupBy(await readCalls(reads, runId), (call) => call.step);
  return rows.map((row) => stepOf(row, calls.get(row.step) ?? []));
}

function stepOf({ step, kind, body, labels, at }: StepRow, calls: readonly CallRecord[]): Step {
  const place = { step, labels: labelsOf(labels), at };
  const read = JSON.parse(body);
  if (kind === "response") return { ...place, kind, response: read as Response, calls };
  if (kind === "steered") return { ...place, kind, said: read as Steered[] };
  return { ...place, kind, compaction: read as Compaction };
}

export function labelsOf(stored: string): Label[] {
  return stored === "" ? [] : (stored.split(" ") as Label[]);
}
