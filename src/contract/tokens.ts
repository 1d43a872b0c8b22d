import { z } from "zod";

/** Names that mean something by themselves: no agent and no guest may bear them. */
export const RESERVED_NAMES: readonly string[] = ["operator", "reader", "guildhall", "*"];

const SCOPE =
  /^(operator|read|agent:[a-z0-9][a-z0-9_-]{0,63}|guest:[a-z0-9_-]{1,64}|channel:[a-z0-9][a-z0-9_-]{0,63}(\/[A-Za-z0-9._@+-]{1,128})?)$/;

export const tokenScope = z
  .string()
  .regex(SCOPE, "expected operator, read, agent:<id>, guest:<name> (lowercase letters, digits, - and _) or channel:<platform>[/<account>]");

export const newToken = z.strictObject({
  scope: tokenScope,
  /** A word for the list of tokens; it means nothing else. */
  name: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, "expected text without control characters")
    .optional(),
});
export type NewToken = z.output<typeof newToken>;

/** The only time the token itself is shown. */
export const createdToken = z.object({ id: z.string(), token: z.string(), scope: z.string(), name: z.string().nullable() });
export type CreatedToken = z.output<typeof createdToken>;

export const token = z.object({
  id: z.string(),
  name: z.string().nullable(),
  scope: z.string(),
  createdAt: z.number(),
  createdBy: z.string(),
  /** To the minute. */
  lastUsedAt: z.number().nullable(),
  revokedAt: z.number().nullable(),
});
export type Token = z.output<typeof token>;

export const tokenList = z.object({ tokens: z.array(token) });
