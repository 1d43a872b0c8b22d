import { type Command, Option } from "commander";
import { APPROVAL_STATES } from "../contract/approvals.ts";
import { wholeNumber } from "./spans.ts";

export function approvalCommands(program: Command, done: (exit: number) => void): void {
  const approvals = program.command("approvals").description("calls that wait for a person's word");
  approvals
    .command("list")
    .description("what was asked, the newest first")
    .addOption(new Option("--state <state>", "only these").choices(APPROVAL_STATES))
    .option("--limit <count>", "at most so many (default: 100)", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./approval.ts")).listApprovals(command.optsWithGlobals())));
  for (const verdict of ["approve", "deny"] as const)
    approvals
      .command(verdict)
      .description(verdict === "approve" ? "let the call be made, once" : "do not let it be made")
      .argument("<id>", "its id, or the beginning of it")
      .action(async (id: string, _own, command: Command) =>
        done(await (await import("./approval.ts")).answerApproval(id, verdict, command.optsWithGlobals())),
      );
}
