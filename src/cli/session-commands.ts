import type { Command } from "commander";
import { wholeNumber } from "./spans.ts";

export function sessionCommands(program: Command, done: (exit: number) => void): void {
  const sessions = program.command("sessions").description("conversations and what was said in them");
  sessions
    .command("list")
    .description("conversations, the newest first")
    .option("--agent <id>", "only those of this agent")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./session.ts")).listSessions(command.optsWithGlobals())));
  sessions
    .command("show")
    .description("the last part of a conversation")
    .argument("<key>", "its key, or the beginning of it")
    .option("--limit <count>", "so many entries (default: 50)", wholeNumber)
    .option("--before <position>", "what was said before this entry", wholeNumber)
    .action(async (key: string, _own, command: Command) =>
      done(await (await import("./session.ts")).showSession(key, command.optsWithGlobals())),
    );
  sessions
    .command("search")
    .description("find what was said by its words")
    .argument("<query...>")
    .option("--agent <id>", "only what was said to and by this agent")
    .option("--limit <count>", "at most so many (default: 20)", wholeNumber)
    .option("--operators", 'understand "a phrase", pref*, -without and OR')
    .action(async (words: string[], _own, command: Command) =>
      done(await (await import("./session.ts")).searchSessions(words.join(" "), command.optsWithGlobals())),
    );
}
