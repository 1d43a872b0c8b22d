import type { Command } from "commander";

export function guardCommands(program: Command, done: (exit: number) => void): void {
  program
    .command("mcp")
    .description("MCP server on stdio, for any outside agent; joins the running daemon or starts one")
    .option("--name <name>", "be called so (default: the client's name and a number)")
    .option("--workspace <dir>", "the repository whose files are meant (default: the current folder)")
    .action(async (_own, command: Command) => done(await (await import("./mcp.ts")).mcp(command.optsWithGlobals())));
  const guard = program.command("guard").description("refuse a write to a file that somebody else has claimed");
  guard
    .command("check", { isDefault: true })
    .description("exit 1 when a file is claimed by somebody else")
    .argument("[files...]")
    .option("--git", "the files of the commit that is being made (git pre-commit hook)")
    .option("--hook", "the file named in the JSON on stdin (agent's pre-write hook); exit 2 refuses")
    .option("--name <name>", "who asks (default: $GUILDHALL_NAME, else found out)")
    .action(async (files: string[], _own, command: Command) =>
      done(await (await import("./guard.ts")).guard(files, command.optsWithGlobals())),
    );
  guard
    .command("install")
    .description("add the guard to this repository's hooks")
    .option("--git", "before every commit")
    .action(async (_own, command: Command) => done(await (await import("./guard-install.ts")).installGuard(command.optsWithGlobals())));
  guard
    .command("where")
    .description("this repository's id, and the header with which a client over HTTP says so")
    .action(async (_own, command: Command) => done(await (await import("./guard.ts")).where(command.optsWithGlobals())));
}
