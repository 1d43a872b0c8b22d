import { z } from "zod";
import { castVote } from "../../../acts/cast-vote.ts";
import type { AgreementParts } from "../../../acts/decide-proposal.ts";
import { openProposalIn } from "../../../acts/open-proposal.ts";
import { entryKey } from "../../../contract/pools.ts";
import { newProposal, type Proposal } from "../../../contract/proposals.ts";
import { identifier, text } from "../../../contract/text.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { NewId } from "../../../kernel/ids.ts";
import type { Label } from "../../../kernel/label.ts";
import type { Pools } from "../../../records/pools/pools.ts";
import type { Tx } from "../../../store/engine.ts";
import { choosePool, grantOf } from "../context/choose-pool.ts";
import { type CallContext, defineTool, type Tool, type ToolOutcome } from "../tool.ts";

export interface AgreementToolParts extends AgreementParts {
  readonly newId: NewId;
}

const pool = z.string().min(1).max(200).optional().describe("May be left out where there is only one for you");
const LISTED = 50;

export function agreementTools(parts: AgreementToolParts): Tool[] {
  const { agreements, pools, newId } = parts;
  return [
    defineTool({
      name: "propose",
      description:
        "Put a decision that concerns several agents to the vote, with the entries that are to be written if it is agreed. It is decided once, for everybody; tell the electors its id by mail.",
      parameters: z.strictObject({
        subject: text(10_000).describe("What is to be decided, so that a voter understands it"),
        electorate: z.array(z.string()).min(1).max(1_000).describe("The names of those who may vote"),
        rule: z
          .union([z.enum(["all", "majority"]), z.strictObject({ k: z.int().positive() })])
          .default("majority")
          .describe('"all", "majority" or {"k": n}; a veto ends it under every rule'),
        deadline_s: z.int().positive().max(31_536_000).default(3_600).describe("Seconds until it is given up"),
        writes: z
          .array(
            z.strictObject({
              pool,
              key: entryKey,
              value: z.unknown().optional(),
              remove: z.literal(true).optional(),
              if_version: z.int().positive().nullable().optional(),
              note: text(2_000).optional(),
            }),
          )
          .max(100)
          .default([])
          .describe("Entries to write, all or none, when it is agreed"),
        pins: z
          .array(z.strictObject({ pool, key: entryKey, version: z.int().positive().nullable() }))
          .max(100)
          .default([])
          .describe("Entries that must still have this version when it is decided"),
      }),
      effect: "keyed",
      egress: true,
      runIn: async (tx, { deadline_s, writes, pins, ...draft }, context) => {
        const checked = newProposal.safeParse({
          ...draft,
          deadline_ms: deadline_s * 1_000,
          writes: await withPools(pools, tx, context, writes, "write"),
          pins: await withPools(pools, tx, context, pins, "read"),
        });
        if (!checked.success) throw malformed(checked.error);
        const external = context.labels.has("external");
        return told(await openProposalIn(parts, tx, newId(), context.caller, checked.data, { external, ...grantOf(context) }), context);
      },
    }),
    defineTool({
      name: "vote",
      description:
        "Vote on a proposal that you have read with proposal_check; its hash says that you mean what you have read. The first vote stands.",
      parameters: z.strictObject({
        id: identifier,
        vote: z.enum(["yes", "no", "veto"]),
        hash: text(256).describe("The proposal's hash, from proposal_check"),
      }),
      // A second vote of the same voter changes nothing and answers the same. The one that decides may need two transactions.
      effect: "keyed",
      // It is for good, and what it decides does not carry the voter's labels.
      consequential: true,
      run: async ({ id, vote, hash }, context) => told(await castVote(parts, context.caller, id, { vote, hash }), context),
    }),
    defineTool({
      name: "proposal_check",
      polls: true,
      description:
        "How a proposal stands: what it says, who has voted, whether it was agreed. Without an id: the open ones that concern you.",
      parameters: z.strictObject({ id: identifier.optional() }),
      effect: "pure",
      run: async ({ id }, context) => {
        if (id !== undefined) return told(await agreements.read(context.caller, id), context);
        const { proposals } = await agreements.list(context.caller, { state: "open", limit: LISTED });
        const shown = proposals.map(({ id: one, subject, proposer, label, deadline }) => ({
          id: one,
          subject,
          proposer,
          label,
          deadline: new Date(deadline).toISOString(),
        }));
        return { output: { proposals: shown }, labels: labelsOf(proposals, context) };
      },
    }),
  ];
}

/** Those that name no pool mean the same one. */
async function withPools<T extends { readonly pool?: string | undefined }>(
  pools: Pools,
  tx: Tx,
  context: CallContext,
  items: readonly T[],
  verb: "read" | "write",
) {
  const chosen = new Map<string | undefined, string>();
  for (const { pool: named } of items) if (!chosen.has(named)) chosen.set(named, await choosePool(pools, context, named, verb, tx));
  return items.map((item) => ({ ...item, pool: chosen.get(item.pool) }));
}

function told(proposal: Proposal, context: CallContext): ToolOutcome {
  const { deadline, createdAt, decidedAt, ...rest } = proposal;
  const ended = decidedAt === null ? {} : { decidedAt: new Date(decidedAt).toISOString() };
  return {
    output: { ...rest, deadline: new Date(deadline).toISOString(), createdAt: new Date(createdAt).toISOString(), ...ended },
    labels: labelsOf([proposal], context),
  };
}

/** Words of a guest are from outside, whatever it has read. */
function labelsOf(proposals: readonly Pick<Proposal, "label" | "proposer">[], { revision }: CallContext): Label[] {
  const outside = ({ label, proposer }: Pick<Proposal, "label" | "proposer">): boolean =>
    label === "external" || (proposer !== "operator" && !revision.agents.has(proposer));
  return proposals.some(outside) ? ["external"] : [];
}

function malformed(error: z.ZodError): Failure {
  const [issue] = error.issues;
  const where = issue && issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  return new Failure("tool.bad_arguments", `propose: ${where}${issue?.message ?? "not as described"}`);
}
