import type { WorkflowStep } from "../../contract/workflows.ts";
import type { KnownWorkflow } from "../../records/workflows/known-workflows.ts";

/**
 * What the agent of a step is told to do. Goal, reads and writes stand on lines of their own, which is also what the built-in offline model
 * goes by.
 */
export function stepWords({ definition, pool }: KnownWorkflow, step: WorkflowStep, goal: string): string {
  const isSharing = pool !== null;
  const [reads, writes] = isSharing ? [step.reads, step.writes] : [[], []];
  return [
    `Goal: ${goal}`,
    ...(reads.length === 0 ? [] : [`Reads: ${reads.join(", ")}`]),
    ...(writes.length === 0 ? [] : [`Writes: ${writes.join(", ")}`]),
    ...writes.flatMap((key) => {
      const schema = definition.keys[key]?.schema;
      return schema === undefined ? [] : [`Schema of ${key}: ${JSON.stringify(schema)}`];
    }),
    "",
    `This is the step ${step.id} of the workflow ${definition.name}.${howItIsKept(reads, writes)}`,
  ].join("\n");
}

function howItIsKept(reads: readonly string[], writes: readonly string[]): string {
  const told = reads.length === 0 ? "" : " What it reads was given to you.";
  if (writes.length === 0) return `${told} Your final answer is its result.`;
  const keys = writes.map((key) => `"${key}"`).join(", ");
  return `${told} Your final answer is stored under ${keys}, unless you have written ${writes.length === 1 ? "it" : "them"} yourself with context_write.`;
}
