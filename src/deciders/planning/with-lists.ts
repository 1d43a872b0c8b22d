import { MAX_ITEMS, type Workflow } from "../../contract/workflows.ts";

const LIST = { type: "array", maxItems: MAX_ITEMS };

/**
 * What a `foreach` goes over is a list, also where nobody has said so: its writer is asked for JSON, and corrected once. Of a pool that outlives
 * the run its own rules say what holds for a key.
 */
export function withLists(definition: Workflow): Workflow {
  if (definition.pool !== undefined || !definition.shared_context) return definition;
  const lists = definition.steps.flatMap(({ foreach, when }) => {
    // A condition may ask for something else than a list, and keep the step from going over it.
    if (foreach === undefined || when !== undefined) return [];
    const { schema, policy = "reject" } = definition.keys[foreach] ?? {};
    return schema === undefined && (policy === "reject" || policy === "last_write") ? [foreach] : [];
  });
  if (lists.length === 0) return definition;
  const keys = Object.fromEntries(lists.map((key) => [key, { ...definition.keys[key], schema: LIST }]));
  return { ...definition, keys: { ...definition.keys, ...keys } };
}
