import type { Command } from "commander";
import { wholeNumber } from "./spans.ts";

export function memoryCommands(program: Command, done: (exit: number) => void): void {
  const memory = program.command("memory").description("what agents keep beyond a conversation");
  memory
    .command("list")
    .description("notes, the newest first")
    .option("--agent <id>", "only those of this agent")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./memory.ts")).listNotes(undefined, command.optsWithGlobals())));
  memory
    .command("search")
    .description("find notes by their words")
    .argument("<query...>")
    .option("--agent <id>", "only those of this agent")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber)
    .action(async (words: string[], _own, command: Command) =>
      done(await (await import("./memory.ts")).listNotes(words.join(" "), command.optsWithGlobals())),
    );
  memory
    .command("show")
    .description("one note, whose it is and where it was saved")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./memory.ts")).showNote(id, command.optsWithGlobals())),
    );
  memory
    .command("forget")
    .description("forget a note for good")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./memory.ts")).forgetNote(id, command.optsWithGlobals())),
    );
}
