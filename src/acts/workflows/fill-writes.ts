import type { Caller } from "../../kernel/caller.ts";
import { isFailure } from "../../kernel/failure.ts";
import type { PoolWrite } from "../../records/pools/decide-write.ts";
import type { KeyForm } from "../../records/pools/step-memory.ts";
import type { TaskError, TaskScope } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { jsonIn, withoutClosing } from "../tasks/answer-value.ts";
import type { Answered } from "../tasks/judgement.ts";
import type { TaskParts } from "../tasks/task-parts.ts";
import { versionsToReplace } from "./own-versions.ts";

/** `misfit`: the answer is not what is to be stored, and can be another. `refused`: it cannot be stored, whatever it is. */
export type Filled =
  | { readonly kind: "filled" }
  | { readonly kind: "misfit"; readonly problem: string }
  | { readonly kind: "refused"; readonly error: TaskError };

const MISFITS = ["pool.invalid_value", "pool.too_large"];

/**
 * Stores the answer under the declared keys that the step has not written itself. Of several each gets all of it, unless it is a JSON object with
 * exactly these keys: then each gets its own.
 */
export async function fillWritesIn(
  { pools }: TaskParts,
  tx: Tx,
  caller: Caller,
  { task, text, labels }: Answered,
  { pool }: TaskScope,
  missing: readonly string[],
): Promise<Filled> {
  if (missing.length === 0) return { kind: "filled" };
  const forms = await pools.formsOfIn(tx, caller, pool, missing);
  const values = valuesOf(text, missing, forms);
  if (!(values instanceof Map)) return values;
  const versions = await versionsToReplace(tx, task, await pools.whatIsReplacedIn(tx, caller, pool, missing));
  const writes = missing.map((key): PoolWrite => {
    const ifVersion = forms.get(key)?.needsVersion ? versions.get(key) : undefined;
    return { key, value: values.get(key), ...(ifVersion === undefined ? {} : { ifVersion }) };
  });
  try {
    await pools.writeIn(tx, caller, pool, writes, { external: labels.has("external"), goesOn: true });
    return { kind: "filled" };
  } catch (error) {
    // Nothing was written, and the transaction goes on.
    if (!isFailure(error) || !error.code.startsWith("pool.")) throw error;
    if (!MISFITS.includes(error.code)) return { kind: "refused", error: { code: error.code, message: error.message } };
    return { kind: "misfit", problem: misfit(error.message, missing, forms) };
  }
}

function valuesOf(
  text: string,
  missing: readonly string[],
  forms: ReadonlyMap<string, KeyForm>,
): Map<string, unknown> | { readonly kind: "misfit"; readonly problem: string } {
  const found = jsonIn(text);
  const own = missing.length > 1 && found ? byKey(found.value, missing) : null;
  if (own) return own;
  const plain = withoutClosing(text);
  const wanting = missing.filter((key) => forms.get(key)?.isJson);
  // A schema may be one for text: then the rules of the pool say whether it fits.
  if (wanting.length > 0 && !found && wanting.some((key) => !takesText(forms.get(key))))
    return { kind: "misfit", problem: misfit("it holds no JSON", missing, forms) };
  return new Map(missing.map((key) => [key, wanting.includes(key) && found ? found.value : plain]));
}

function byKey(value: unknown, keys: readonly string[]): Map<string, unknown> | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const entries = new Map(Object.entries(value));
  return entries.size === keys.length && keys.every((key) => entries.has(key)) ? entries : null;
}

function takesText(form: KeyForm | undefined): boolean {
  const type = (form?.schema as { readonly type?: unknown } | undefined)?.type;
  return type === "string" || (Array.isArray(type) && type.includes("string"));
}

function misfit(why: string, missing: readonly string[], forms: ReadonlyMap<string, KeyForm>): string {
  const schemas = missing.flatMap((key) => {
    const schema = forms.get(key)?.schema;
    return schema === undefined ? [] : [`Schema of ${key}: ${JSON.stringify(schema)}`];
  });
  const keys = missing.map((key) => `"${key}"`).join(", ");
  return [`Your answer is to be stored under ${keys}, and does not fit: ${why}`, ...schemas].join("\n");
}
