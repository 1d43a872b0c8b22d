import type { CommandAnswer } from "../../../acts/answer-command.ts";
import { Failure, isFailure } from "../../../kernel/failure.ts";
import type { Tx } from "../../../store/engine.ts";
import type { Command, CommandParts, Talk } from "./command.ts";
import type { ParsedCommand } from "./parse-command.ts";
import { findCommand, meantCommand, usageOf } from "./registry.ts";
import { reaches, whoMay } from "./standing.ts";

export interface ChosenCommand {
  readonly name: string;
  readonly args: readonly string[];
  run(tx: Tx, talk: Omit<Talk, "args">, parts: CommandParts): Promise<CommandAnswer>;
}

/** What a text that looks like a command is to be; undefined: something that is said to the agent. */
export function chooseCommand(parsed: ParsedCommand | undefined): ChosenCommand | undefined {
  if (!parsed) return undefined;
  const command = findCommand(parsed.name);
  const { args } = parsed;
  if (command) return { name: command.name, args, run: (tx, talk, parts) => refusable(() => use(command, tx, { ...talk, args }, parts)) };
  const meant = meantCommand(parsed.name);
  if (!meant) return undefined;
  const message = `There is no command /${parsed.name}; did you mean /${meant.name}?`;
  const hint = "Send /help for all of them.";
  return { name: "unknown", args: [], run: () => refusable(() => Promise.reject(new Failure("usage.wrong", message, { hint }))) };
}

async function use(command: Command, tx: Tx, talk: Talk, parts: CommandParts): Promise<CommandAnswer> {
  if (!reaches(talk.standing, command.who))
    throw new Failure("request.forbidden", `${talk.by} may not use /${command.name} here.`, { hint: whoMay(command.who) });
  const count = talk.args.length;
  if (count < command.least || count > command.most)
    throw new Failure("usage.wrong", `Write it like this: ${usageOf(command)}`, { hint: `It is there to ${command.help}.` });
  return command.run(tx, talk, parts);
}

/** A refusal is an answer like any other. What is wrong with the house is not: then nothing has happened, and the sender is told so. */
async function refusable(run: () => Promise<CommandAnswer>): Promise<CommandAnswer> {
  try {
    return await run();
  } catch (error) {
    if (!isFailure(error) || /^(store|fence|internal)\./.test(error.code)) throw error;
    return { text: `${error.message}\n${error.hint}`, error: { code: error.code, message: error.message } };
  }
}
