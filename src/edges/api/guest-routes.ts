import { endGuestIn, type GuestParts } from "../../acts/end-guest.ts";
import { type GuardAnswer, guardAnswer, guardQuestion, guestLease, guestList, joinedGuest, newGuest } from "../../contract/guests.ts";
import { fileResource } from "../../contract/workspace.ts";
import type { Caller } from "../../kernel/caller.ts";
import { TimeSlice } from "../../kernel/time-slice.ts";
import { ClaimIndex } from "../../records/claims/claim-index.ts";
import type { Claims } from "../../records/claims/claims.ts";
import { LOOKERS, OPERATORS, type Route, route } from "./route.ts";

const CLAIMS_AT_ONCE = 1_000;

export function guestRoutes(parts: GuestParts): Route[] {
  const { guests, claims } = parts;
  return [
    route({
      method: "POST",
      path: "/api/guests",
      summary: "Let an outside agent's process join: it gets a name of its own, and a token that lives as long as it renews it",
      allow: OPERATORS,
      body: newGuest,
      answers: { 201: joinedGuest },
      secret: true,
      handle: ({ caller, body, transact }) =>
        transact("join", async (tx) => ({ status: 201, body: await guests.joinIn(tx, caller, body) })),
    }),
    route({
      method: "GET",
      path: "/api/guests",
      summary: "The outside agents that are here now",
      allow: LOOKERS,
      answers: { 200: guestList },
      handle: async () => ({ status: 200, body: { guests: await guests.list() } }),
    }),
    route({
      method: "POST",
      path: "/api/guests/renew",
      summary: "Say that this guest's process still lives",
      allow: ["guest"],
      answers: { 200: guestLease },
      handle: async ({ caller }) => ({ status: 200, body: await guests.renew(caller) }),
    }),
    route({
      method: "POST",
      path: "/api/guests/leave",
      summary: "Give the name back; the token ends with it",
      allow: ["guest"],
      answers: { 200: guestLease },
      handle: async ({ caller, transact }) =>
        transact("leave", async (tx) => {
          await endGuestIn(tx, parts, caller.name, caller.name);
          return { status: 200, body: { name: caller.name, expiresAt: 0 } };
        }),
    }),
    route({
      method: "POST",
      path: "/api/guard",
      summary: "Whether somebody else has claimed these files; answers as well who asks",
      allow: OPERATORS,
      body: guardQuestion,
      answers: { 200: guardAnswer },
      maxBodyBytes: 16 * 1024 * 1024,
      handle: async ({ caller, body }) => {
        const repositories = [...new Set(body.files.map(({ repository }) => repository))];
        let who = body.name ?? (body.session === undefined ? undefined : await guests.ofSession(body.session));
        if (who === undefined) {
          who = await guests.ofProcesses(body.ancestors, repositories);
          if (who !== undefined && body.session !== undefined) await guests.noteSession(body.session, who);
        }
        return { status: 200, body: { who: who ?? null, held: await heldByOthers(claims, caller, body.files, who) } };
      },
    }),
  ];
}

async function heldByOthers(
  claims: Claims,
  caller: Caller,
  files: readonly { readonly repository: string; readonly path: string }[],
  who: string | undefined,
): Promise<GuardAnswer["held"]> {
  const slice = new TimeSlice();
  const held: GuardAnswer["held"] = [];
  for (const [repository, own] of Map.groupBy(files, (file) => file.repository)) {
    const others = await claimsOfOthers(claims, caller, repository, who);
    for (const { path } of own) {
      if (slice.isOver) await slice.next();
      const found = others.find(fileResource(repository, path));
      if (found) held.push({ repository, path, holder: found.holder, resource: found.resource, expiresAt: found.expiresAt });
    }
  }
  return held;
}

async function claimsOfOthers(claims: Claims, caller: Caller, repository: string, who: string | undefined): Promise<ClaimIndex> {
  const found = new ClaimIndex();
  let after: string | undefined;
  do {
    const part = await claims.list(caller, { overlaps: fileResource(repository, "**"), limit: CLAIMS_AT_ONCE, after });
    for (const claim of part.claims) if (claim.holder !== who) found.add(claim);
    after = part.next ?? undefined;
  } while (after !== undefined);
  return found;
}
