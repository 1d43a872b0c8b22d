import { type Command, InvalidArgumentError, Option } from "commander";
import { CHAT_TYPES } from "../contract/bindings.ts";
import { MAX_RECORDED } from "../contract/routing.ts";

export function routeCommands(program: Command, done: (exit: number) => void): void {
  const route = program.command("route").description("which agent a message goes to, and what a new config would change");
  route
    .command("explain")
    .description("which agent a message goes to, by which line of the config, and why the other lines lost")
    .requiredOption("--platform <name>", "telegram, discord, slack, …")
    .option("--chat <id>", "the chat (default: the sender's)")
    .option("--topic <id>", "the topic or thread within the chat")
    .option("--peer <id>", "the sender (default: the chat's id)")
    .option("--guild <id>", "the guild or team that the chat belongs to")
    .option("--team <id>", "another name for --guild")
    .addOption(
      new Option("--chat-type <type>", "what kind of chat (default: dm where the chat is the sender's, else group)").choices(CHAT_TYPES),
    )
    .option("--account <name>", "which of our accounts there (default: default)")
    .option("--roles <roles>", "the sender's roles, separated by commas")
    .action(async (_own, command: Command) => done(await (await import("./route.ts")).explainRoute(command.optsWithGlobals())));
  route
    .command("diff")
    .description("which recorded messages would go to another agent; --config names the new config")
    .option("--last <number>", `how many messages, the newest (default: 1000, at most ${MAX_RECORDED})`, recorded, 1_000)
    .action(async (_own, command: Command) => done(await (await import("./route-diff.ts")).diffRoutes(command.optsWithGlobals())));
}

function recorded(text: string): number {
  const number = Number(text);
  if (!/^\d{1,9}$/.test(text) || number < 1 || number > MAX_RECORDED)
    throw new InvalidArgumentError(`Expected a number from 1 to ${MAX_RECORDED}.`);
  return number;
}
