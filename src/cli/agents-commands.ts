import type { Command } from "commander";
import { place } from "./bind-place.ts";

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

export function agentsCommands(program: Command, done: (exit: number) => void): void {
  const agents = program.command("agents").description("who answers here; changes are made in the config file, with or without a daemon");
  agents
    .command("list")
    .description("all agents and their states")
    .action(async (_own, command: Command) => done(await (await import("./agents.ts")).listAgents(command.optsWithGlobals())));
  agents
    .command("add")
    .description("add an agent to the config, and make its folder")
    .argument("<id>", "lowercase letters, digits, _ and -")
    .option("--model <model>", "<provider>/<model> (default: everybody's)")
    .option("--tools <tools>", "a profile such as coding, or tools: a,b,c (default: everybody's)")
    .option("--personality <text>", "what it is told about itself (default: everybody's)")
    .option("--default", "it answers whatever is bound to nobody")
    .option("--role <role>", "a role; may be given several times", collect)
    .option("--bind <place>", "a chat that goes to it, as telegram:-100123 or telegram:-100123:42; several times", place, [])
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./agents.ts")).addAgent(id, command.optsWithGlobals())),
    );
  agents
    .command("show")
    .description("everything that holds for an agent, and the line that says so")
    .argument("<id>")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./agents.ts")).showAgent(id, command.optsWithGlobals())),
    );
  for (const [verb, words] of [
    ["pause", "let what comes for an agent wait"],
    ["resume", "let an agent answer again, first what has waited"],
    ["archive", "refuse what comes for an agent from now on"],
  ] as const)
    agents
      .command(verb)
      .description(words)
      .argument("<id>")
      .action(async (id: string, _own, command: Command) =>
        done(await (await import("./agents.ts")).changeState(verb, id, command.optsWithGlobals())),
      );
  agents
    .command("restart")
    .description("stop an agent's running turns and begin them again, as the agent is now")
    .argument("<id>")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./agents.ts")).restartAgent(id, command.optsWithGlobals())),
    );
  program
    .command("init")
    .description("make a home with a config to begin with; touches nothing that is there")
    .option("--yes", "ask nothing")
    .option("--provider <name>", "openai, anthropic, google or openrouter: its key is read from stdin, checked with a real call, and saved")
    .action(async (_own, command: Command) => done(await (await import("./init.ts")).init(command.optsWithGlobals())));
}
