import type { Context } from "hono";
import type { z } from "zod";
import { Failure } from "../../kernel/failure.ts";

/** The request's JSON in its declared shape, or a refusal that names the field. */
export async function readBody<Schema extends z.ZodType>(context: Context, schema: Schema): Promise<z.output<Schema>> {
  const text = await context.req.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure("request.malformed", "the body is not JSON", { cause: error });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => ({ path: issue.path.join("."), message: issue.message }));
  const [first] = problems;
  throw new Failure("request.malformed", `${first?.path ? `${first.path}: ` : ""}${first?.message}`, { details: { problems } });
}
