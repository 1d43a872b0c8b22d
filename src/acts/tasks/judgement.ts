import type { Label } from "../../kernel/label.ts";
import type { Step } from "../../records/journal/steps.ts";
import type { RunInput } from "../../records/sessions/runs.ts";
import type { StoredTask } from "../../records/tasks/task-rows.ts";
import type { StepRunEnd } from "../workflows/settle-step.ts";

/** Why a turn that has answered goes on all the same. */
export type SentBack = "answer" | "stale";

export type Judgement =
  /** The task has ended so, as far as its answer is concerned. */
  | { readonly kind: "ends"; readonly end: Omit<StepRunEnd, "causedBy"> }
  /** The turn goes on, and is told this by the gateway. */
  | { readonly kind: "goes on"; readonly why: SentBack; readonly text: string; readonly labels: readonly Label[] };

export interface Answered {
  readonly run: RunInput;
  readonly task: StoredTask;
  readonly text: string;
  readonly steps: readonly Step[];
  readonly labels: ReadonlySet<Label>;
}

const CORRECTIONS = 1;

/** Whether the answer may be another than what was asked for. */
export function mayGoOn({ spec: { outputSchema, scope } }: Pick<StoredTask, "spec">): boolean {
  return outputSchema !== undefined || (scope !== undefined && scope.reads.length + scope.writes.length > 0);
}

export function ends(result: unknown): Judgement {
  return { kind: "ends", end: { status: "completed", result, error: null } };
}

/** Once; the second time it has failed. */
export function corrected({ steps }: Answered, problem: string): Judgement {
  const before = sentBackFor(steps, "answer");
  if (before >= CORRECTIONS)
    return { kind: "ends", end: { status: "failed", result: null, error: { code: "task.bad_answer", message: short(problem) } } };
  const text = `${problem}\nAnswer again, with that alone and nothing around it. This is the only time that it can be corrected.`;
  return { kind: "goes on", why: "answer", text, labels: [] };
}

/** How often the turn has answered, and was told so. */
export function sentBackFor(steps: readonly Step[], why: SentBack): number {
  return steps.flatMap((step) => (step.kind === "steered" ? step.said : [])).filter(({ gateway }) => gateway === why).length;
}

const SHORT = 2_000;
function short(text: string): string {
  return text.length <= SHORT ? text : `${text.slice(0, SHORT).toWellFormed()}…`;
}
