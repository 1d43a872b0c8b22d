import type { MailParts } from "../../../acts/send-mail.ts";
import type { Claims } from "../../../records/claims/claims.ts";
import type { Tool } from "../tool.ts";
import { agentListTool } from "./agent-list-tool.ts";
import { type AgreementToolParts, agreementTools } from "./agreement-tools.ts";
import { claimTools } from "./claim-tools.ts";
import { mailTools } from "./mail-tools.ts";

export interface CoordinationToolParts extends MailParts, AgreementToolParts {
  readonly claims: Claims;
}

/** What agents agree with each other by: claims, mail, votes. The words are those that outside agents have for it. */
export function coordinationTools(parts: CoordinationToolParts): Tool[] {
  return [...claimTools(parts.claims), ...mailTools(parts), ...agreementTools(parts), agentListTool(parts.agents)];
}
