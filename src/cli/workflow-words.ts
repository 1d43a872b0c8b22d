import type { Relay, WorkflowRun } from "../contract/workflows.ts";
import { span } from "./spans.ts";
import { harmless, paint } from "./terminal.ts";
import { usageInWords } from "./workflow-tree.ts";

/** What the run was for: each output under its key. */
export function outputsInWords({ outputs }: Pick<WorkflowRun, "outputs">): string {
  const { bold } = paint(process.stdout);
  return Object.entries(outputs)
    .map(
      ([key, value]) => `${bold(harmless(key))}\n${harmless(typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? ""))}`,
    )
    .join("\n\n");
}

/** One line about how it ended, and where there is more. */
export function endOf(run: WorkflowRun): string {
  const { bold, green, red } = paint(process.stderr);
  const style = run.status === "completed" ? green : red;
  const took = run.endedAt === null ? "" : ` in ${span(run.endedAt - run.createdAt)}`;
  const used = run.usage ? `, ${usageInWords(run.usage)}` : "";
  return `${bold(harmless(run.name))} ${style(run.status)}${took}${used}\n  more: guildhall workflow show ${run.id}`;
}

/** What somebody may do about a step that waits for a person. */
export function reviewInWords(run: string, step: string): string {
  return `${harmless(step)} waits for a person: guildhall workflow approve ${run} ${harmless(step)}, with --reject for no`;
}

/** The relay meter: what went through the shared memory, and what the same would have been through a parent. */
export function relayInWords({ throughMemory, throughParent, saved }: Relay): string {
  const share = throughParent > 0 ? ` (${Math.round((saved / throughParent) * 100)} %)` : "";
  return `${throughMemory} tokens through the shared memory; through a parent that retypes everything ${throughParent}, saved ${saved}${share}`;
}
