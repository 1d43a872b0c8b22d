import { createContext, Script } from "node:vm";
import { isFailure, messageOf } from "../../kernel/failure.ts";
import { schemaCheck } from "../../records/pools/schema-check.ts";

/** It is part of what the model is told, and of the task's row. */
const LONGEST = 65_536;
const TIME_MS = 250;

/** Why a schema that a model has written cannot be used for answers; null: it can. */
export function schemaProblem(schema: object): string | null {
  const { length } = JSON.stringify(schema);
  if (length > LONGEST) return `${length} characters are too many; it may have ${LONGEST}`;
  return problemOf(() => schemaCheck(schema));
}

/** Why the answer does not fit; null: it does. */
export function misfitOf(schema: object, value: unknown): string | null {
  return problemOf(() => schemaCheck(schema)("answer", value));
}

/**
 * A pattern, or definitions that name each other, can make a check of a few lines take for ever, and nothing else of the gateway would go on
 * meanwhile: models are not trusted with that.
 */
function problemOf(check: () => unknown): string | null {
  try {
    new Script("check()").runInContext(createContext({ check }), { timeout: TIME_MS });
    return null;
  } catch (error) {
    return isFailure(error) ? error.message : `it cannot be checked with this schema: ${messageOf(error)}`;
  }
}
