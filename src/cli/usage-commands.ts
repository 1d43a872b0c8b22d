import { type Command, Option } from "commander";
import { USAGE_BY } from "../contract/usage.ts";
import { wholeNumber } from "./spans.ts";

export function usageCommands(program: Command, done: (exit: number) => void): void {
  program
    .command("usage")
    .description("what models were asked and what it cost")
    .addOption(new Option("--by <what>", "what a line stands for").choices(USAGE_BY).default("day"))
    .option("--agent <id>", "only of this agent")
    .option("--days <count>", "the last so many days (default: 30)", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./usage.ts")).showUsage(command.optsWithGlobals())));
}
