import { castVote } from "../../acts/cast-vote.ts";
import type { AgreementParts } from "../../acts/decide-proposal.ts";
import { openProposal } from "../../acts/open-proposal.ts";
import { newProposal, newVote, proposal, proposalList, proposalQuery } from "../../contract/proposals.ts";
import type { NewId } from "../../kernel/ids.ts";
import { LOOKERS, MEMBERS, type Route, route } from "./route.ts";

/** All of it is hashed again with every vote. */
const MAX_BODY_BYTES = 512 * 1024;

export function proposalsRoutes(parts: AgreementParts, newId: NewId): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/proposals",
      summary: "Put something to the vote, with the writes that happen if it is agreed",
      allow: MEMBERS,
      body: newProposal,
      maxBodyBytes: MAX_BODY_BYTES,
      answers: { 201: proposal },
      handle: async ({ caller, body, record }) => ({
        status: 201,
        body: await openProposal(parts, newId, caller, body, { record: (tx, opened) => record(tx, { status: 201, body: opened }) }),
      }),
    }),
    route({
      method: "GET",
      path: "/api/proposals",
      summary: "Proposals one has made or may vote on, the newest first",
      allow: LOOKERS,
      query: proposalQuery,
      answers: { 200: proposalList },
      handle: async ({ caller, query }) => ({ status: 200, body: await parts.agreements.list(caller, query) }),
    }),
    route({
      method: "GET",
      path: "/api/proposals/:id",
      summary: "One proposal with its votes and its outcome",
      allow: LOOKERS,
      answers: { 200: proposal },
      handle: async ({ caller, params }) => ({ status: 200, body: await parts.agreements.read(caller, params.id) }),
    }),
    route({
      method: "POST",
      path: "/api/proposals/:id/votes",
      summary: "Vote on a proposal; the first vote stands, and the one that makes the outcome certain decides it",
      allow: MEMBERS,
      body: newVote,
      answers: { 200: proposal },
      handle: async ({ caller, params, body, record }) => ({
        status: 200,
        body: await castVote(parts, caller, params.id, body, (tx, voted) => record(tx, { status: 200, body: voted })),
      }),
    }),
  ];
}
