import { z } from "zod";
import type { Claim } from "../../../contract/claims.ts";
import { text } from "../../../contract/text.ts";
import type { Claims } from "../../../records/claims/claims.ts";
import { defineTool, type Tool } from "../tool.ts";

const DEFAULT_TTL_S = 600;
/** A turn that stands in line holds a place among those that run. */
const MAX_WAIT_S = 60;

const resource = text(500).describe(
  "What you claim: a path such as repo/src/api/** (* within a name, ** for any folders), or any other name such as deploy/production",
);
const ttl = z.int().positive().max(86_400).default(DEFAULT_TTL_S).describe("Held for so many seconds unless renewed");
const fence = z.int().positive().describe("The fence you were given with the claim");

export function claimTools(claims: Claims): Tool[] {
  return [
    defineTool({
      name: "claim",
      description:
        "Claim files or another resource before you change them, so that no other agent does at the same time. If somebody else holds it you are told who and until when. Release it when you are done.",
      parameters: z.strictObject({
        resource,
        ttl_s: ttl,
        wait_s: z.int().min(0).max(MAX_WAIT_S).default(0).describe("Stand in line for so many seconds when it is held"),
        mode: z.enum(["exclusive", "shared"]).default("exclusive").describe("shared: others may share it, nobody may have it exclusively"),
      }),
      // Made again, it answers with the same fence: the holder's own repeat is a renewal.
      effect: "keyed",
      // Names are common ground: guests see them.
      egress: true,
      timeoutMs: (MAX_WAIT_S + 15) * 1_000,
      run: async ({ resource: name, ttl_s, wait_s, mode }, { caller, signal }) => {
        const request = { resource: name, ttl_ms: ttl_s * 1_000, wait_ms: wait_s * 1_000, mode };
        const { claim } = await claims.take(caller, request, { signal });
        return { output: told(claim) };
      },
    }),
    defineTool({
      name: "claim_renew",
      description: "Hold a claim longer, before it expires. If it was lost meanwhile, stop changing what it was for and claim it again.",
      parameters: z.strictObject({ resource, fence, ttl_s: ttl }),
      effect: "keyed",
      runIn: async (tx, { resource: name, fence: held, ttl_s }, { caller }) => ({
        output: told(await claims.renewIn(tx, caller, { resource: name, fence: held, ttl_ms: ttl_s * 1_000 })),
      }),
    }),
    defineTool({
      name: "claim_release",
      description: "Give a claim back as soon as you are done, so that others need not wait for it to expire.",
      parameters: z.strictObject({ resource, fence }),
      effect: "keyed",
      runIn: async (tx, { resource: name, fence: held }, { caller }) => {
        await claims.releaseIn(tx, caller, { resource: name, fence: held });
        return { output: { resource: name, fence: held, released: true } };
      },
    }),
  ];
}

function told({ resource: name, fence: given, mode, expiresAt, maxUntil }: Claim) {
  return { resource: name, fence: given, mode, expiresAt: new Date(expiresAt).toISOString(), maxUntil: new Date(maxUntil).toISOString() };
}
