import { z } from "zod";
import { type Claim, newClaim } from "../../contract/claims.ts";
import { text } from "../../contract/text.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Claims, Taken } from "../../records/claims/claims.ts";
import { resourceOfFile } from "./file-resource.ts";
import { check, inWords, type McpParts, type Tool, type ToolCall, tool } from "./tool.ts";

const DEFAULT_TTL_S = 600;
const ALL_CLAIMS = 1_000;

const files = z
  .array(text(1_024))
  .min(1)
  .max(100)
  .optional()
  .describe("Files of your repository: paths, or patterns with * (within a name) and ** (any folders), such as src/api/**");
const resource = text(500).optional().describe("Any other name to claim, such as deploy/production; instead of files");
const ttl = z.int().positive().max(86_400).default(DEFAULT_TTL_S).describe("Held for so many seconds unless renewed");
const fence = z.int().positive().optional().describe("The fence you were given; without it whatever you hold under this name is meant");

export const claimTools: readonly Tool[] = [
  tool({
    name: "claim",
    description:
      "Claim files or another resource before you change them, so that no other agent does at the same time. All of them or none; if somebody else holds one you are told who and until when. Release them when you are done.",
    input: z.strictObject({
      files,
      resource,
      ttl_s: ttl,
      wait_s: z.int().min(0).max(300).default(0).describe("Stand in line for so many seconds when it is held"),
      mode: z.enum(["exclusive", "shared"]).default("exclusive").describe("shared: others may share it, nobody may have it exclusively"),
    }),
    changes: true,
    call: async ({ claims }, call, { ttl_s, wait_s, mode, ...what }) => {
      const taken: Taken[] = [];
      const until = performance.now() + wait_s * 1_000;
      try {
        // In one order for everybody, so that two who want the same files never wait for each other.
        for (const name of resourcesOf(call, what)) {
          const left = Math.max(0, Math.round(until - performance.now()));
          const request = check(newClaim, { resource: name, ttl_ms: ttl_s * 1_000, mode, wait_ms: wait_s === 0 ? 0 : left });
          taken.push(await claims.take(call.caller, request, { signal: call.signal }));
        }
      } catch (error) {
        await giveBack(claims, call.caller, taken);
        throw error;
      }
      return answer(
        "you hold",
        taken.map(({ claim }) => claim),
      );
    },
  }),
  tool({
    name: "claim_renew",
    description: "Hold a claim longer, before it expires. If it was lost meanwhile, stop changing what it was for and claim it again.",
    input: z.strictObject({ files, resource, fence, ttl_s: ttl }),
    changes: true,
    call: async (parts, call, { ttl_s, ...what }) => {
      const own = await ownClaims(parts, call, what);
      const renewed: Claim[] = [];
      for (const one of own) renewed.push(await parts.claims.renew(call.caller, { ...one, ttl_ms: ttl_s * 1_000 }));
      return answer("you hold", renewed);
    },
  }),
  tool({
    name: "claim_release",
    description: "Give claims back as soon as you are done, so that others need not wait for them to expire.",
    input: z.strictObject({ files, resource, fence, all: z.literal(true).optional().describe("Everything you hold") }),
    changes: true,
    call: async (parts, call, { all, ...what }) => {
      const own = all ? await everythingOf(parts, call) : await ownClaims(parts, call, what);
      for (const one of own) await parts.claims.release(call.caller, one);
      const names = own.map((one) => one.resource);
      return { text: names.length === 0 ? "you held nothing" : `released: ${names.join(", ")}`, data: { released: names } };
    },
  }),
  tool({
    name: "claims_list",
    description: "Who holds what, and until when. Look here before you plan changes to files that others may be working on.",
    input: z.strictObject({ files, resource, after: z.string().max(600).optional().describe("`next` of the part before") }),
    changes: false,
    call: async ({ claims }, call, { after, ...what }) => {
      const asked = what.files === undefined && what.resource === undefined ? [undefined] : resourcesOf(call, what);
      const parts = await Promise.all(asked.map((overlaps) => claims.list(call.caller, { overlaps, after, limit: ALL_CLAIMS })));
      const found = [...new Map(parts.flatMap((part) => part.claims).map((one) => [one.fence, one])).values()];
      const next = parts.length === 1 ? (parts[0]?.next ?? null) : null;
      const lines = found.map((one) => `${one.resource}  held by ${one.holder} until ${inWords(one.expiresAt)}, fence ${one.fence}`);
      return { text: lines.join("\n") || "nobody holds anything", data: { claims: found, next } };
    },
  }),
];

interface What {
  readonly files?: readonly string[] | undefined;
  readonly resource?: string | undefined;
}

function resourcesOf(call: ToolCall, { files: paths, resource: name }: What): string[] {
  if ((paths === undefined) === (name === undefined))
    throw new Failure("request.malformed", "expected either files or resource", { hint: "Give one of the two." });
  const names = paths === undefined ? [name as string] : paths.map((file) => resourceOfFile(call.workspace, file));
  return [...new Set(names)].sort();
}

async function giveBack(claims: Claims, caller: Caller, taken: readonly Taken[]): Promise<void> {
  for (const { claim, fresh } of taken) if (fresh) await claims.release(caller, claim).catch(() => {});
}

interface Own {
  readonly resource: string;
  readonly fence: number;
}

async function ownClaims({ claims }: McpParts, call: ToolCall, what: What & { readonly fence?: number | undefined }): Promise<Own[]> {
  const names = resourcesOf(call, what);
  if (what.fence !== undefined) {
    if (names.length > 1) throw new Failure("request.malformed", "fence: belongs to one claim; several files were given");
    return [{ resource: names[0] as string, fence: what.fence }];
  }
  const own: Own[] = [];
  for (const name of names) {
    const found = await ownClaim(claims, call.caller, name);
    if (!found) throw new Failure("claim.lost", `you do not hold "${name}"`);
    own.push({ resource: name, fence: found.fence });
  }
  return own;
}

/** Of the names that begin so, this very one comes first, with all who share it. */
async function ownClaim(claims: Claims, caller: Caller, name: string): Promise<Claim | undefined> {
  for (let after: string | undefined; ; ) {
    const { claims: found, next } = await claims.list(caller, { prefix: name, limit: ALL_CLAIMS, after });
    const own = found.find((one) => one.resource === name && one.holder === caller.name);
    if (own || next === null || found.at(-1)?.resource !== name) return own;
    after = next;
  }
}

async function everythingOf({ claims }: McpParts, call: ToolCall): Promise<Own[]> {
  const own: Own[] = [];
  let after: string | undefined;
  do {
    const part = await claims.list(call.caller, { limit: ALL_CLAIMS, after });
    own.push(
      ...part.claims
        .filter((one) => one.holder === call.caller.name)
        .map(({ resource: name, fence: number }) => ({ resource: name, fence: number })),
    );
    after = part.next ?? undefined;
  } while (after !== undefined);
  return own;
}

function answer(verb: string, held: readonly Claim[]) {
  const lines = held.map((one) => `${verb} ${one.resource} until ${inWords(one.expiresAt)}, fence ${one.fence}`);
  return { text: lines.join("\n"), data: { claims: held } };
}
