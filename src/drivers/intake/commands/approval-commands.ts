import { answerApprovalIn } from "../../../acts/wait-turn.ts";
import type { Verdict } from "../../../contract/approvals.ts";
import type { Command } from "./command.ts";

const SHOWN_CHARACTERS = 1_500;

function answering(name: string, verdict: Verdict, help: string, done: string): Command {
  return {
    name,
    takes: "ID",
    least: 1,
    most: 1,
    help,
    who: "owner",
    run: async (tx, { args, by, standing }, { store, approvals }) => {
      const answerer = { name: by, mayAnswer: standing === "owner" };
      const { agent, shown, answeredBy } = await answerApprovalIn(
        store,
        approvals,
        tx,
        answerer,
        (args[0] as string).toLowerCase(),
        verdict,
      );
      return { text: `${done} by ${answeredBy}: ${agent} calls ${bounded(shown)}` };
    },
  };
}

export const approveCommand = answering("approve", "approve", "let an agent make the call that waits for this approval", "Approved");
export const denyCommand = answering("deny", "deny", "do not let it make the call", "Denied");

/** What is left out is said, so that nobody takes a part for the whole. */
function bounded(text: string): string {
  if (text.length <= SHOWN_CHARACTERS) return text;
  return `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()} [and ${text.length - SHOWN_CHARACTERS} more characters]`;
}
