import type { Command } from "commander";

export function canCommands(program: Command, done: (exit: number) => void): void {
  program
    .command("can")
    .description("whether an agent may call a tool, which line of the config decides, and what to change")
    .argument("<agent>")
    .argument("<tool>")
    .argument("[args]", "its arguments as JSON; without them: whether it may be called at all")
    .action(async (agent: string, tool: string, args: string | undefined, _own, command: Command) =>
      done(await (await import("./can.ts")).canCall(agent, tool, args, command.optsWithGlobals())),
    );
}
