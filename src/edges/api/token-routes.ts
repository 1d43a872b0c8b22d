import { createdToken, newToken, token, tokenList } from "../../contract/tokens.ts";
import type { Access } from "../../records/access/access.ts";
import { OPERATORS, type Route, route } from "./route.ts";

export function tokenRoutes(access: Access): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/tokens",
      summary: "Make a token; this answer is the only place where it is shown",
      allow: OPERATORS,
      body: newToken,
      answers: { 201: createdToken },
      secret: true,
      handle: ({ caller, body, transact }) =>
        transact("create token", async (tx) => ({ status: 201, body: await access.createIn(tx, caller, body) })),
    }),
    route({
      method: "GET",
      path: "/api/tokens",
      summary: "All tokens, revoked ones too, without their secrets",
      allow: OPERATORS,
      answers: { 200: tokenList },
      handle: async () => ({ status: 200, body: { tokens: await access.list() } }),
    }),
    route({
      method: "DELETE",
      path: "/api/tokens/:id",
      summary: "Revoke a token, by its id or the beginning of it; it is cut off within a second, on open streams too",
      allow: OPERATORS,
      answers: { 200: token },
      handle: async ({ caller, params }) => ({ status: 200, body: await access.revoke(caller, params.id) }),
    }),
  ];
}
