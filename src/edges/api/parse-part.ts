import type { z } from "zod";
import { Failure } from "../../kernel/failure.ts";

/** A part of the request in its declared shape, or a refusal that names the field. */
export function parsePart(schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, 20).map((issue) => ({ path: issue.path.join("."), message: issue.message }));
  const [first] = problems;
  throw new Failure("request.malformed", `${first?.path ? `${first.path}: ` : ""}${first?.message}`, { details: { problems } });
}
