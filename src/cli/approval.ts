import { ApprovalsClient } from "../client/approvals.ts";
import type { Approval, ApprovalFilter, Verdict } from "../contract/approvals.ts";
import { connectRunning } from "./connect.ts";
import { moment } from "./spans.ts";
import { bold, type GlobalOptions, print, say } from "./terminal.ts";

export async function listApprovals({
  state,
  limit,
  ...options
}: GlobalOptions & Pick<ApprovalFilter, "state" | "limit">): Promise<number> {
  const { approvals } = await (await clientFor(options)).list({ state, limit });
  if (options.json) print(JSON.stringify({ approvals }));
  else if (approvals.length === 0) say("nothing was asked");
  else print(approvals.map(textOf).join("\n"));
  return 0;
}

export async function answerApproval(id: string, verdict: Verdict, options: GlobalOptions): Promise<number> {
  const approval = await (await clientFor(options)).answer(id, verdict);
  print(options.json ? JSON.stringify(approval) : textOf(approval));
  return 0;
}

/** The arguments come as the gateway shows them, with nothing hidden in them. */
function textOf(approval: Approval): string {
  const { id, state, agent, shown, answeredBy, expiresAt } = approval;
  const ending = answeredBy === null ? (state === "asked" ? `until ${moment(expiresAt)}` : "") : `by ${answeredBy}`;
  return `${bold(id)} ${state} ${ending}\n  ${agent} calls ${shown}`;
}

async function clientFor(options: GlobalOptions): Promise<ApprovalsClient> {
  return new ApprovalsClient(await connectRunning(options));
}
