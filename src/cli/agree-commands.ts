import { Argument, type Command, Option } from "commander";
import { milliseconds, wholeNumber } from "./spans.ts";

export function agreeCommands(program: Command, done: (exit: number) => void): void {
  const agree = program.command("agree").description("put something to the vote, and vote");
  agree
    .command("propose")
    .description("open a proposal; its id is printed")
    .argument("<subject>", "what is to be agreed on")
    .requiredOption("--elector <name...>", "who votes")
    .option("--rule <rule>", "all, majority, or how many must say yes", "all")
    .option("--deadline <time>", "aborted when it is not agreed by then", milliseconds, 3_600_000)
    .option("--write <pool/key=value...>", "written when it is agreed; JSON, else text")
    .option("--pin <pool/key@version...>", "aborted when this entry has changed; @none: when there is one")
    .action(async (subject: string, _own, command: Command) =>
      done(await (await import("./agree.ts")).propose(subject, command.optsWithGlobals())),
    );
  agree
    .command("vote")
    .description("vote once; what comes after the first vote changes nothing")
    .argument("<id>", "its id, or the beginning of it")
    .addArgument(new Argument("<vote>").choices(["yes", "no", "veto"]))
    .option("--hash <hash>", "only if it is still what had this hash (default: as it is now)")
    .action(async (id: string, vote: "yes" | "no" | "veto", _own, command: Command) =>
      done(await (await import("./agree.ts")).vote(id, vote, command.optsWithGlobals())),
    );
  agree
    .command("show")
    .description("a proposal, its votes and what became of it")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./agree.ts")).showProposal(id, command.optsWithGlobals())),
    );
  agree
    .command("list")
    .description("proposals one has made or may vote on, the newest first")
    .addOption(new Option("--state <state>", "only these").choices(["open", "committed", "aborted"]))
    .option("--limit <count>", "at most so many", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./agree.ts")).listProposals(command.optsWithGlobals())));
}
