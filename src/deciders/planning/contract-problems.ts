import type { Workflow } from "../../contract/workflows.ts";
import { errorAt, type Finding, warningAt } from "../../settings/config-problem.ts";
import { withLists } from "./with-lists.ts";

/** What stands under `keys` and does not go with how the keys are used. */
export function contractProblems(definition: Workflow): Finding[] {
  if (definition.pool !== undefined) {
    const message = `what holds for the keys of the pool ${definition.pool} is written where the pool is`;
    const fix = `Move them to pools.${definition.pool}.keys in the config, or remove pool: ${definition.pool}.`;
    return Object.keys(definition.keys).length === 0 ? [] : [warningAt(["keys"], "workflow.unused_keys", message, fix, "key")];
  }
  // Whatever else is wrong with them is told already.
  if (!definition.shared_context) return [];
  const written = new Set(definition.steps.flatMap(({ writes }) => writes));
  const { keys } = withLists(definition);
  return definition.steps.flatMap(({ foreach }, index) => {
    if (foreach === undefined || !written.has(foreach)) return [];
    const { schema, policy } = keys[foreach] ?? {};
    if (policy === "append" || policy === "union" || schema === true) return [];
    const path = ["steps", index, "foreach"];
    const fix = `Write under keys: ${JSON.stringify(foreach)}: { schema: { type: array } }.`;
    if (schema === undefined || schema === false) {
      const message = `nothing says that ${foreach} holds a list`;
      return [warningAt(path, "workflow.no_list", message, fix)];
    }
    const types = [schema.type].flat();
    if (types.includes("array") || schema.type === undefined) return [];
    return [errorAt(path, "workflow.no_list", `by its schema, ${foreach} holds no list`, fix)];
  });
}
