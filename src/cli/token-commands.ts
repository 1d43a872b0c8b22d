import type { Command } from "commander";

export function tokenCommands(program: Command, done: (exit: number) => void): void {
  const token = program.command("token").description("who may call the daemon, and as whom");
  token
    .command("create")
    .description("make a token; it is shown once")
    .requiredOption("--scope <scope>", "operator, read, agent:<id>, guest:<name> or channel:<platform>[/<account>]")
    .option("--name <name>", "a word for the list")
    .action(async (_own, command: Command) => done(await (await import("./token.ts")).createToken(command.optsWithGlobals())));
  token
    .command("list")
    .description("all tokens, without their secrets")
    .action(async (_own, command: Command) => done(await (await import("./token.ts")).listTokens(command.optsWithGlobals())));
  token
    .command("revoke")
    .description("cut a token off, within a second")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./token.ts")).revokeToken(id, command.optsWithGlobals())),
    );
}
