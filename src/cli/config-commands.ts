import type { Command } from "commander";
import { wholeNumber } from "./spans.ts";

export function configCommands(program: Command, done: (exit: number) => void): void {
  const config = program.command("config").description("what the config file says, and what is wrong with it");
  config
    .command("check")
    .description("every problem with its place and what to write instead; exit 2 on an error")
    .argument("[file]", "the config file (default: the home's)")
    .action(async (file: string | undefined, _own, command: Command) =>
      done(await (await import("./config.ts")).check(file, command.optsWithGlobals())),
    );
  config
    .command("explain")
    .description("a key's value, where it comes from, and who reads it")
    .argument("<key>", "for example agents.coder.model or server.port")
    .action(async (key: string, _own, command: Command) =>
      done(await (await import("./config.ts")).explainKey(key, command.optsWithGlobals())),
    );
  config
    .command("revisions")
    .description("what the daemon runs on, whether its file is that, and what was applied or rejected when")
    .option("--limit <number>", "how many, the newest first", wholeNumber, 20)
    .action(async (_own, command: Command) => done(await (await import("./config-revisions.ts")).showRevisions(command.optsWithGlobals())));
  config
    .command("pull")
    .description("where nodes share a config: put the newest text into this node's file, if that is an older one")
    .action(async (_own, command: Command) => done(await (await import("./config-revisions.ts")).pull(command.optsWithGlobals())));
  config
    .command("schema")
    .description("the JSON Schema of the config file, for editors")
    .action(async () => done(await (await import("./config.ts")).schema()));
}
