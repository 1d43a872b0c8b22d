import type { Label } from "../../kernel/label.ts";
import type { ModelCall, ModelUsage } from "../../kernel/model.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list } from "../../store/sql.ts";
import { type CallRecord, readCallsOf } from "./calls.ts";

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
  /** The gateway itself speaks, about the answer that came before. */
  readonly gateway?: "answer" | "stale";
  /** To be acked with the turn's commit. */
  readonly mail?: readonly { readonly id: string; readonly fence: number }[];
}

/** What the model is told less of from here on. */
export interface Compaction {
  /** In place of what came before; null: results of calls are shown short, and that is all. */
  readonly summary: string | null;
  /** Of the conversation before the turn, entries from this position on are told all the same; null: none. */
  readonly from: number | null;
  /** Steps before this one are part of the summary; what was said in between is told all the same. */
  readonly before: number;
  /** Results of calls in steps before this one are shown short. */
  readonly shortened: number;
  /** Who has written the summary, and how much there was room for to summarise; null: nobody could, and what came before is left out. */
  readonly by: (Pick<Response, "model" | "usage" | "cost" | "requestHash"> & { readonly room: number }) | null;
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
  readonly run_id: string;
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
  return (await readStepsOf(reads, [runId])).get(runId) ?? [];
}

/** The same of several; those that have done nothing are not in it. */
export async function readStepsOf(reads: Reads, runIds: readonly string[]): Promise<Map<string, Step[]>> {
  if (runIds.length === 0) return new Map();
  const rows = await reads.all<StepRow>`select run_id, step, kind, body, labels, at from run_steps
    where run_id in ${list(runIds)} order by run_id, step`;
  if (rows.length === 0) return new Map();
  const calls = Map.groupBy(await readCallsOf(reads, runIds), (call) => `${call.runId} ${call.step}`);
  const steps = new Map<string, Step[]>();
  for (const row of rows) {
    const ofRun = steps.get(row.run_id) ?? [];
    ofRun.push(stepOf(row, calls.get(`${row.run_id} ${row.step}`) ?? []));
    steps.set(row.run_id, ofRun);
  }
  return steps;
}

/**
 * How much there is to read of each that has done more than answer once, in bytes: of the others the words tell everything. One that failed has failed
 * with the calls of its answer, which need not have left a row.
 */
export async function journalBytes(reads: Reads, runIds: readonly string[]): Promise<Map<string, number>> {
  if (runIds.length === 0) return new Map();
  const rows = await reads.all<{ run_id: string; bytes: number }>`select run_id, cast(sum(bytes) as bigint) as bytes from (
      select run_id, octet_length(body) as bytes, case when kind = 'response' then 1 else 2 end as counts from run_steps
        where run_id in ${list(runIds)}
      union all select run_id, octet_length(args) + coalesce(octet_length(result), 0) as bytes, 1 as counts from tool_calls
        where run_id in ${list(runIds)}
      union all select id as run_id, 0 as bytes, 1 as counts from runs
        where id in ${list(runIds)} and (reply_calls is not null or status <> 'completed')
    ) as parts group by run_id having sum(counts) > 1`;
  return new Map(rows.map((row) => [row.run_id, row.bytes]));
}

/** One step, without its calls. */
export async function readStep(reads: Reads, runId: string, step: number): Promise<Step | undefined> {
  const row =
    await reads.get<StepRow>`select run_id, step, kind, body, labels, at from run_steps where run_id = ${runId} and step = ${step}`;
  return row && stepOf(row, []);
}

/** What came in between, and where the turn was summarised; without answers and calls, which are long. */
export async function readNotedSteps(reads: Reads, runId: string): Promise<Step[]> {
  const rows = await reads.all<StepRow>`select run_id, step, kind, body, labels, at from run_steps
    where run_id = ${runId} and kind <> 'response' order by step`;
  return rows.map((row) => stepOf(row, []));
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
