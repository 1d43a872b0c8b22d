import { answerApprovalIn } from "../../acts/wait-turn.ts";
import { approval, approvalAnswer, approvalList, approvalQuery } from "../../contract/approvals.ts";
import type { Approvals } from "../../records/access/approvals.ts";
import type { Store } from "../../store/store.ts";
import { OPERATORS, OVERSEERS, type Route, route } from "./route.ts";

export function approvalsRoutes(store: Store, approvals: Approvals): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/approvals",
      summary: "Calls that wait or waited for a person's word, the newest first",
      allow: OVERSEERS,
      query: approvalQuery,
      answers: { 200: approvalList },
      handle: async ({ query }) => ({ status: 200, body: { approvals: await approvals.list(query) } }),
    }),
    route({
      method: "POST",
      path: "/api/approvals/:id",
      summary: "Approve or deny a call; the same verdict again changes nothing",
      allow: OPERATORS,
      body: approvalAnswer,
      answers: { 200: approval },
      handle: ({ caller, params, body, transact }) =>
        transact("answer approval", async (tx) => {
          const answerer = { name: caller.name, mayAnswer: caller.kind === "operator" };
          return { status: 200, body: await answerApprovalIn(store, approvals, tx, answerer, params.id, body.verdict) };
        }),
    }),
  ];
}
