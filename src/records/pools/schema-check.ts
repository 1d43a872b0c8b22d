import { type Schema, Validator } from "@cfworker/json-schema";
import { Failure } from "../../kernel/failure.ts";

const TOLD_AT_MOST = 5;

/** Throws what is wrong with the value and where. */
export type SchemaCheck = (key: string, value: unknown) => void;

/** A schema that cannot be used at all (an unknown `$ref`, a broken pattern) is told when the pool is made, not when it is written. */
export function schemaCheck(schema: object | boolean): SchemaCheck {
  const validator = new Validator(schema as Schema, "2020-12", false);
  try {
    for (const probe of [null, true, 0, "", [], {}]) validator.validate(probe);
  } catch (error) {
    throw new Failure("request.malformed", `this JSON Schema cannot be used: ${(error as Error).message}`);
  }
  return (key, value) => {
    const { valid, errors } = validator.validate(value);
    if (valid) return;
    // The innermost errors say what is wrong; those around them only that something inside is.
    const problems = errors.slice(-TOLD_AT_MOST).map((problem) => ({ where: problem.instanceLocation, what: problem.error }));
    const said = problems.map(({ where, what }) => `${where}: ${what}`).join(" ");
    throw new Failure("pool.invalid_value", `the value of "${key}" does not fit its schema: ${said}`, { details: { key, problems } });
  };
}
