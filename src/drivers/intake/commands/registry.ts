import { editDistance } from "../../../kernel/nearest.ts";
import { agentCommand, agentsCommand, modelCommand } from "./agent-commands.ts";
import { approveCommand, denyCommand } from "./approval-commands.ts";
import type { Command } from "./command.ts";
import { pairCommand, unpairCommand } from "./pairing-commands.ts";
import { compactCommand, newCommand, statusCommand, stopCommand } from "./session-commands.ts";
import { reaches } from "./standing.ts";

const helpCommand: Command = {
  name: "help",
  takes: "",
  least: 0,
  most: 0,
  help: "what you may use here",
  who: "anyone",
  run: async (_tx, { standing }) => ({
    text: COMMANDS.filter(({ who }) => reaches(standing, who))
      .map((command) => `${usageOf(command)} - ${command.help}`)
      .join("\n"),
  }),
};

/** Every command there is, the same on a terminal and in every channel. */
export const COMMANDS: readonly Command[] = [
  newCommand,
  compactCommand,
  stopCommand,
  agentsCommand,
  agentCommand,
  modelCommand,
  statusCommand,
  approveCommand,
  denyCommand,
  pairCommand,
  unpairCommand,
  helpCommand,
];

export function usageOf({ name, takes }: Command): string {
  return takes === "" ? `/${name}` : `/${name} ${takes}`;
}

export function findCommand(name: string): Command | undefined {
  return COMMANDS.find((command) => command.name === name);
}

/** The command that was probably meant: one slip of the finger away. Anything farther is something that somebody says to an agent. */
export function meantCommand(name: string): Command | undefined {
  return COMMANDS.find((command) => editDistance(name, command.name) === 1);
}
