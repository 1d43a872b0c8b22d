import type { Command } from "commander";

export function doctorCommands(program: Command, done: (exit: number) => void): void {
  program
    .command("doctor")
    .description("whether the daemon will start, and what is wrong; needs none running")
    .option("--fix", "put right what is safe: permissions, missing folders")
    .option("--isolation", "on a copy of this config: let every agent try to reach every other's things")
    .action(async (_own, command: Command) => done(await (await import("./doctor.ts")).doctor(command.optsWithGlobals())));
}
