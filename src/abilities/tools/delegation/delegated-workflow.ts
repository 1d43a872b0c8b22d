import { type Workflow, workflow } from "../../../contract/workflows.ts";
import { Failure } from "../../../kernel/failure.ts";

const TOLD_AT_MOST = 5;

/** Steps as a model writes them; whatever they write is what comes of it. */
export function delegatedWorkflow(
  steps: readonly { readonly writes?: readonly string[] | undefined }[],
  sharedContext: boolean | undefined,
): Workflow {
  const outputs = [...new Set(steps.flatMap(({ writes = [] }) => writes))];
  const shared = sharedContext === undefined ? {} : { shared_context: sharedContext };
  const result = workflow.safeParse({ name: "delegated", steps, outputs: sharedContext === false ? [] : outputs, ...shared });
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, TOLD_AT_MOST).map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Failure("tool.bad_arguments", `workflow: ${problems.join("; ")}`);
}
