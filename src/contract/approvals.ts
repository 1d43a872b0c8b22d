import { z } from "zod";

export const APPROVAL_STATES = ["asked", "approved", "denied", "expired", "void"] as const;

/** A call that waits for a person's word. */
export const approval = z.object({
  id: z.string(),
  run: z.string().nullable(),
  agent: z.string(),
  tool: z.string(),
  /** The arguments as they would be used; `shown` is their text with everything hidden made visible. */
  args: z.unknown(),
  shown: z.string(),
  hash: z.string(),
  askedOf: z.string(),
  state: z.enum(APPROVAL_STATES),
  askedAt: z.number(),
  expiresAt: z.number(),
  answeredBy: z.string().nullable(),
  answeredAt: z.number().nullable(),
  /** When the call was made; an approval is good for one. */
  usedAt: z.number().nullable(),
});
export type Approval = z.output<typeof approval>;

export const approvalQuery = z.strictObject({
  state: z.enum(APPROVAL_STATES).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(100),
});
export type ApprovalFilter = z.input<typeof approvalQuery>;
export const approvalList = z.object({ approvals: z.array(approval) });
export type ApprovalList = z.output<typeof approvalList>;

export const approvalAnswer = z.strictObject({ verdict: z.enum(["approve", "deny"]) });
export type Verdict = z.output<typeof approvalAnswer>["verdict"];
