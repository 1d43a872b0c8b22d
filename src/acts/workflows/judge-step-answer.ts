import { MAX_STALE_RERUNS, type StaleRule } from "../../contract/workflows.ts";
import type { Caller } from "../../kernel/caller.ts";
import { isFailure } from "../../kernel/failure.ts";
import { madeUnsafeCall } from "../../records/journal/calls.ts";
import type { Freshness, StaleRead } from "../../records/pools/freshness.ts";
import type { TaskScope } from "../../records/tasks/task-rows.ts";
import { readStep, type StaleNote } from "../../records/workflows/workflow-step-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { withoutClosing } from "../tasks/answer-value.ts";
import { type Answered, corrected, ends, type Judgement, mayGoOn, sentBackFor } from "../tasks/judgement.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { agentIn } from "../turn-mail.ts";
import { fillWritesIn } from "./fill-writes.ts";
import { type GoingWorkflow, holdGoing } from "./going-workflow.ts";
import { rebaseWords } from "./rebase-words.ts";
import { definitionOf } from "./start-step.ts";

type Stale = Omit<Extract<Freshness, { readonly fresh: false }>, "fresh">;

/**
 * The end of a step, as far as its answer is concerned: what it had read must still be so, and its answer must fit the keys that it goes to. Both
 * are held until the commit. The run is held first: whoever settles steps of it does it in this order.
 */
export async function judgeStepAnswerIn(parts: TaskParts, tx: Tx, answered: Answered): Promise<Judgement> {
  const { run, task, text } = answered;
  const going = await holdGoing(parts, tx, task.workflow as string, run.agent, null);
  const { scope } = task.spec;
  const judged = going && scope && mayGoOn(task) ? await judgeIn(parts, tx, answered, going, scope) : ends(withoutClosing(text));
  return judged.kind === "ends" ? { kind: "ends", end: { ...judged.end, going } } : judged;
}

async function judgeIn(parts: TaskParts, tx: Tx, answered: Answered, going: GoingWorkflow, scope: TaskScope): Promise<Judgement> {
  const { run, task, text } = answered;
  const plain = { status: "completed" as const, result: withoutClosing(text), error: null };
  const caller = agentIn(run, [], task.step, scope.pool);
  const written = scope.writes.length === 0 ? new Set() : await parts.pools.writtenKeysIn(tx, caller, scope.pool, scope.writes);
  const missing = scope.writes.filter((key) => !written.has(key));
  const stale = await staleReads(parts, tx, caller, scope.pool, missing);
  const step = definitionOf(going, { ofStep: (task.step as string).replace(/\[\d+\]$/, "") });
  const rule = step.on_stale ?? going.known.definition.on_stale;
  if (stale && rule !== "warn") return resolveStale(parts, tx, caller, answered, rule, stale);
  if (missing.length > 0 && answered.labels.has("secret")) return corrected(answered, sharesSecret(missing));
  const filled = await fillWritesIn(parts, tx, caller, answered, scope, missing);
  if (filled.kind === "misfit") return corrected(answered, filled.problem);
  if (filled.kind === "refused") return { kind: "ends", end: { status: "failed", result: null, error: filled.error } };
  return { kind: "ends", end: stale ? { ...plain, stale: { reads: stale.stale.map(noted), again: false } } : plain };
}

/** An entry does not say that it holds a secret; so it becomes one only as with `context_write`, by the word of a person. */
function sharesSecret(missing: readonly string[]): string {
  const keys = missing.map((key) => `"${key}"`).join(", ");
  return `You have read a secret, and your answer would be shared under ${keys}. Write what others may know there with context_write: a person is asked first.`;
}

/** What is no longer as the turn has read it; null: nothing. Whatever it is, it stays so until the commit. */
async function staleReads({ pools }: TaskParts, tx: Tx, caller: Caller, pool: string, missing: readonly string[]): Promise<Stale | null> {
  try {
    await pools.refuseStaleIn(
      tx,
      caller,
      missing.map((key) => ({ pool, key })),
    );
    return null;
  } catch (error) {
    if (!isFailure(error, "pool.stale")) throw error;
    return error.details as unknown as Stale;
  }
}

async function resolveStale(
  parts: TaskParts,
  tx: Tx,
  caller: Caller,
  answered: Answered,
  rule: Exclude<StaleRule, "warn">,
  stale: Stale,
): Promise<Judgement> {
  const { run, task, steps } = answered;
  const reads = stale.stale.map(noted);
  if (rule === "rebase" && sentBackFor(steps, "stale") < MAX_STALE_RERUNS) {
    // It is shown what has changed: from now on its work rests on that.
    const current = stale.stale.map(({ pool, key, current }) => ({ pool, key, version: current ?? 0, shown: false }));
    const isExternal = (key: string) => stale.shown.some((one) => one.key === key && one.external);
    await parts.pools.noteReadsIn(
      tx,
      caller,
      current.map((one) => ({ ...one, external: isExternal(one.key) })),
    );
    const labels = stale.shown.some(({ external }) => external) ? (["external"] as const) : [];
    return { kind: "goes on", why: "stale", text: rebaseWords(stale.stale, stale.more), labels };
  }
  const row = rule === "rerun" ? await readStep(tx, task.workflow as string, task.step as string) : undefined;
  if (row && row.staleReruns < MAX_STALE_RERUNS && !(await madeUnsafeCall(tx, run.id)))
    return { kind: "ends", end: { status: "failed", result: null, error: staleError(stale.stale, ""), stale: { reads, again: true } } };
  const why = rule === "rebase" ? "; it was given what had changed 3 times" : row ? whyNot(row.staleReruns) : "";
  return { kind: "ends", end: { status: "failed", result: null, error: staleError(stale.stale, why), final: true } };
}

function whyNot(reruns: number): string {
  return reruns >= MAX_STALE_RERUNS ? `; it was done ${reruns} times again` : "; it made a call that must not be made twice";
}

function staleError(stale: readonly StaleRead[], why: string): { code: string; message: string } {
  const names = stale.map(
    ({ key, read, current, by }) => `"${key}" (read at version ${read}, now ${current ?? "gone"}${by ? ` by ${by}` : ""})`,
  );
  return { code: "step.stale", message: `what the step had read has changed: ${names.join(", ")}${why}` };
}

function noted({ key, read, current }: StaleRead): StaleNote {
  return { key, read, current };
}
