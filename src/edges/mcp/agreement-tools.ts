import { z } from "zod";
import { castVote } from "../../acts/cast-vote.ts";
import { openProposal } from "../../acts/open-proposal.ts";
import { COMMONS } from "../../contract/guests.ts";
import { newProposal, newVote, type Proposal } from "../../contract/proposals.ts";
import { identifier, text } from "../../contract/text.ts";
import { check, inWords, type Tool, tool } from "./tool.ts";

const pool = z.string().min(1).max(200).default(COMMONS);

export const agreementTools: readonly Tool[] = [
  tool({
    name: "propose",
    description:
      "Put a decision that concerns several agents to the vote, with the entries that are to be written if it is agreed. It is decided once, for everybody; tell the electors its id by mail.",
    input: z.strictObject({
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
            key: z.string(),
            value: z.unknown().optional(),
            remove: z.literal(true).optional(),
            if_version: z.int().positive().nullable().optional(),
            note: z.string().optional(),
          }),
        )
        .max(100)
        .default([])
        .describe("Entries to write, all or none, when it is agreed"),
      pins: z
        .array(z.strictObject({ pool, key: z.string(), version: z.int().positive().nullable() }))
        .max(100)
        .default([])
        .describe("Entries that must still have this version when it is decided"),
    }),
    changes: true,
    call: async (parts, { caller }, { deadline_s, ...draft }) => {
      const checked = check(newProposal, { ...draft, deadline_ms: deadline_s * 1_000 });
      return proposalAnswer(await openProposal(parts, parts.newId, caller, checked));
    },
  }),
  tool({
    name: "vote",
    description:
      "Vote on a proposal that you have read with proposal_check; its hash says that you mean what you have read. The first vote stands.",
    input: z.strictObject({
      id: identifier,
      vote: z.enum(["yes", "no", "veto"]),
      hash: z.string().describe("The proposal's hash, from proposal_check"),
    }),
    changes: true,
    call: async (parts, { caller }, { id, ...rest }) => proposalAnswer(await castVote(parts, caller, id, check(newVote, rest))),
  }),
  tool({
    name: "proposal_check",
    description:
      "How a proposal stands: what it says, who has voted, whether it was agreed. Without an id: the open ones that concern you.",
    input: z.strictObject({ id: identifier.optional() }),
    changes: false,
    call: async ({ agreements }, { caller }, { id }) => {
      if (id !== undefined) return proposalAnswer(await agreements.read(caller, id));
      const { proposals } = await agreements.list(caller, { state: "open", limit: 100 });
      const lines = proposals.map((one) => `${one.id} by ${one.proposer}, until ${inWords(one.deadline)}: ${one.subject}`);
      return { text: lines.join("\n") || "no open proposals", data: { proposals } };
    },
  }),
];

function proposalAnswer(proposal: Proposal) {
  const { id, state, because, subject, hash, rule, electorate, votes, writes } = proposal;
  const lines = [
    `proposal ${id} is ${state}${because === null ? "" : `: ${because}`}`,
    subject,
    `rule ${JSON.stringify(rule)}, electorate ${electorate.join(", ")}, until ${inWords(proposal.deadline)}`,
    `votes: ${votes.map(({ voter, vote }) => `${voter} ${vote}`).join(", ") || "none yet"}`,
    ...(writes.length > 0 ? [`writes: ${JSON.stringify(writes)}`] : []),
    `hash ${hash}`,
  ];
  return { text: lines.join("\n"), data: { proposal } };
}
