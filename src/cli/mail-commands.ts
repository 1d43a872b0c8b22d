import { type Command, Option } from "commander";
import { milliseconds, wholeNumber } from "./spans.ts";

export function mailCommands(program: Command, done: (exit: number) => void): void {
  const mail = program.command("mail").description("write to agents and roles, and read what came");
  mail
    .command("send")
    .description("send a mail; its id is printed")
    .argument("<to>", "an identity, or role:<role>")
    .argument("<content>", "the text, or JSON with --data")
    .option("--data", "the content is JSON")
    .option("--type <type>", "what kind of mail it is", "note")
    .option("--urgent", "before all other mail, between two tool calls of a running agent")
    .option("--conversation <name>", "mail of one conversation arrives in order")
    .option("--reader <name...>", "who else may read it")
    .option("--wake", "start a turn of the agent that receives it")
    .option("--expires <time>", "give up after this (default: 7d)", milliseconds)
    .action(async (to: string, content: string, _own, command: Command) =>
      done(await (await import("./mail.ts")).sendMail(to, content, command.optsWithGlobals())),
    );
  mail
    .command("read")
    .description("take what has come; without an ack it comes again")
    .option("--max <count>", "at most so many (default: 10)", wholeNumber)
    .option("--visibility <time>", "until it comes again (default: 30s)", milliseconds)
    .option("--wait <time>", "wait so long when there is nothing", milliseconds)
    .option("--ack", "ack each one after it was printed")
    .action(async (_own, command: Command) => done(await (await import("./mail.ts")).readMail(command.optsWithGlobals())));
  mail
    .command("ack")
    .description("done with it: it does not come again")
    .argument("<id>", "its id, or the beginning of it")
    .argument("<fence>", "the number that reading it showed", wholeNumber)
    .action(async (id: string, fence: number, _own, command: Command) =>
      done(await (await import("./mail.ts")).ackMail(id, fence, command.optsWithGlobals())),
    );
  mail
    .command("nack")
    .description("give it back, to come again")
    .argument("<id>", "its id, or the beginning of it")
    .argument("<fence>", "the number that reading it showed", wholeNumber)
    .option("--delay <time>", "not before this has passed", milliseconds)
    .action(async (id: string, fence: number, _own, command: Command) =>
      done(await (await import("./mail.ts")).nackMail(id, fence, command.optsWithGlobals())),
    );
  mail
    .command("list")
    .description("mail and how it stands, the newest first")
    .addOption(new Option("--box <box>", "which").choices(["in", "sent", "readable", "all"]).default("in"))
    .addOption(new Option("--state <state>", "only these").choices(["pending", "leased", "acked", "dead", "expired"]))
    .option("--limit <count>", "at most so many", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./mail.ts")).listMail(command.optsWithGlobals())));
  mail
    .command("show")
    .description("one mail, and how it stands")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) => done(await (await import("./mail.ts")).showMail(id, command.optsWithGlobals())));
}
