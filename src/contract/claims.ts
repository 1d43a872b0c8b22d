import { z } from "zod";
import { identifier, text } from "./text.ts";

export const MAX_HOLD_MS = 24 * 3_600_000;
const MAX_WAIT_MS = 300_000;

/** Elements separated by "/". `*` stands for anything within one element, an element `**` for any number of elements. */
const resource = text(500);
const fence = z.int().positive();
const ttl = z.int().positive().max(MAX_HOLD_MS, "expected at most 24 hours, the longest a claim may be held");

const MODES = ["exclusive", "shared"] as const;
export type ClaimMode = (typeof MODES)[number];

export const newClaim = z.strictObject({
  resource,
  ttl_ms: ttl.default(60_000),
  mode: z.enum(MODES).default("exclusive"),
  /** Stand in line for so long when it is held. */
  wait_ms: z.int().min(0).max(MAX_WAIT_MS, "expected at most five minutes; ask again then").default(0),
});
export type NewClaim = z.output<typeof newClaim>;
/** As a caller may write it, defaults left out. */
export type ClaimRequest = z.input<typeof newClaim>;

export const claimRenewal = z.strictObject({ resource, fence, ttl_ms: ttl.default(60_000) });
export type ClaimRenewal = z.output<typeof claimRenewal>;
export type ClaimRenewalRequest = z.input<typeof claimRenewal>;

export const claimRelease = z.strictObject({ resource, fence });
export type ClaimRelease = z.output<typeof claimRelease>;
export const releasedClaim = z.object({ resource: z.string(), fence: z.number(), released: z.literal(true) });

export const claim = z.object({
  resource: z.string(),
  holder: z.string(),
  fence: z.number(),
  mode: z.enum(MODES),
  takenAt: z.number(),
  expiresAt: z.number(),
  /** It cannot be renewed beyond this. */
  maxUntil: z.number(),
});
export type Claim = z.output<typeof claim>;

export const claimQuery = z.strictObject({
  /** Only names that begin so. */
  prefix: identifier.max(500).optional(),
  /** Only those that overlap with this resource: what keeps one from claiming it. */
  overlaps: resource.optional(),
  /** `next` of the part before. */
  after: z.string().max(600).optional(),
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000),
});
export type ClaimQuery = z.output<typeof claimQuery>;
export type ClaimFilter = z.input<typeof claimQuery>;

/** By name. `next` is null at the end. */
export const claimList = z.object({
  claims: z.array(claim.extend({ waiters: z.number() })),
  next: z.string().nullable(),
});
export type ClaimList = z.output<typeof claimList>;
