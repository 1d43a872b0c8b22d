import { claim, claimList, claimQuery, claimRelease, claimRenewal, newClaim, releasedClaim } from "../../contract/claims.ts";
import type { Claims, Taken } from "../../records/claims/claims.ts";
import { LOOKERS, MEMBERS, type Route, route } from "./route.ts";

const takenAnswer = ({ claim, fresh }: Taken) => ({ status: fresh ? (201 as const) : (200 as const), body: claim });

export function claimsRoutes(claims: Claims): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/claims",
      summary: "Claim a resource for a time, or wait in line for it; one's own claim is made to last longer (200)",
      allow: MEMBERS,
      body: newClaim,
      answers: { 201: claim, 200: claim },
      handle: async ({ caller, body, signal, record }) =>
        takenAnswer(await claims.take(caller, body, { signal: signal(), record: (tx, taken) => record(tx, takenAnswer(taken)) })),
    }),
    route({
      method: "GET",
      path: "/api/claims",
      summary: "Who holds what, and until when",
      allow: LOOKERS,
      query: claimQuery,
      answers: { 200: claimList },
      handle: async ({ caller, query }) => ({ status: 200, body: await claims.list(caller, query) }),
    }),
    route({
      method: "POST",
      path: "/api/claims/renew",
      summary: "Hold a claim for longer; one that was lost cannot be renewed",
      allow: MEMBERS,
      body: claimRenewal,
      answers: { 200: claim },
      handle: ({ caller, body, transact }) =>
        transact("renew claim", async (tx) => ({ status: 200, body: await claims.renewIn(tx, caller, body) })),
    }),
    route({
      method: "POST",
      path: "/api/claims/release",
      summary: "Give a claim back",
      allow: MEMBERS,
      body: claimRelease,
      answers: { 200: releasedClaim },
      handle: ({ caller, body, transact }) =>
        transact("release claim", async (tx) => {
          await claims.releaseIn(tx, caller, body);
          return { status: 200, body: { resource: body.resource, fence: body.fence, released: true } };
        }),
    }),
  ];
}
