import type { Workflow } from "../../contract/workflows.ts";
import { Failure } from "../../kernel/failure.ts";
import type { PlacedProblem, ReadWorkflow } from "../../settings/load-workflow.ts";
import { type AroundWorkflow, workflowProblems } from "./workflow-problems.ts";

/** Nobody reads more at once. */
const MAX_PROBLEMS = 100;

export interface CheckedWorkflow {
  /** Null: there are errors, and it cannot run. */
  readonly workflow: Workflow | null;
  /** Errors first, then by line. */
  readonly problems: readonly PlacedProblem[];
}

/** All there is to say about a workflow before it runs: what the schema found, and what stands between its steps. */
export function checkWorkflow(read: ReadWorkflow, around: AroundWorkflow): CheckedWorkflow {
  const { workflow } = read;
  const found = workflow === null ? [] : workflowProblems(workflow, around).map(read.place);
  const problems = [...read.problems, ...found].toSorted(
    (a, b) => rank(a) - rank(b) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
  const isSound = problems.every(({ severity }) => severity !== "error");
  return { workflow: isSound ? workflow : null, problems: problems.slice(0, MAX_PROBLEMS) };
}

/** Throws `workflow.invalid` with every problem in its details. */
export function soundWorkflow(read: ReadWorkflow, around: AroundWorkflow): Workflow {
  const { workflow, problems } = checkWorkflow(read, around);
  const [first] = problems;
  if (workflow !== null) return workflow;
  if (!first) throw new Failure("internal.bug", "a workflow was refused without a problem");
  const errors = problems.filter(({ severity }) => severity === "error");
  const more = errors.length === 1 ? "" : ` (and ${errors.length - 1} more)`;
  const hint = first.fix === null ? {} : { hint: first.fix };
  throw new Failure("workflow.invalid", `${problemInWords(first)}${more}`, { details: { problems }, ...hint });
}

/** `file:line:column: steps.2.needs: what is wrong`. */
export function problemInWords({ file, line, column, path, message }: PlacedProblem): string {
  const place = file === null ? "" : `${file}:${line}:${column}: `;
  return `${place}${path.length === 0 ? "" : `${path.join(".")}: `}${message}`;
}

function rank({ severity }: PlacedProblem): number {
  return severity === "error" ? 0 : 1;
}
