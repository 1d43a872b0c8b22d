import { type Command, Option } from "commander";
import { wholeNumber } from "./spans.ts";

export function runCommands(program: Command, done: (exit: number) => void): void {
  program
    .command("run")
    .description("turns")
    .command("show")
    .description("one turn from its message to its reply: answers, calls, what it took")
    .argument("<id>", "its id, or the beginning of it")
    .option("--context", "what the model was told, part by part, with tokens")
    .option("--step <number>", "with --context: before this answer instead of the last", wholeNumber)
    .option("--full", "texts in full instead of their beginning")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./run-show.ts")).showRun(id, command.optsWithGlobals())),
    );
  program
    .command("ps")
    .description("who does what now, and what it took so far")
    .option("--agent <id>", "only this agent")
    .addOption(new Option("--nodes", "the nodes instead: what each holds, what waits, what is taken over").conflicts("agent"))
    .option("--watch", "again every second, until Ctrl-C")
    .action(async (_own, command: Command) => done(await (await import("./ps.ts")).ps(command.optsWithGlobals())));
  program
    .command("tail")
    .description("events as they happen, until Ctrl-C")
    .option("--after <seq>", "those after this one (default: the last few)", wholeNumber)
    .option("--last <count>", "begin so many before the newest (default: 20)", wholeNumber)
    .option("--subject <subject>", "only what happens to this, such as run/ID, workflow/ID or pool/NAME")
    .option("--type <type>", "only events of this type, such as turn.completed; `turn.` for all that begin so")
    .action(async (_own, command: Command) => done(await (await import("./tail.ts")).tail(command.optsWithGlobals())));
}
