import type { Command } from "commander";

export function channelCommands(program: Command, done: (exit: number) => void): void {
  const channel = program.command("channel").description("accounts on chat platforms, and whom they let in");
  channel
    .command("list")
    .description("every account of the config, and how it is doing")
    .action(async (_own, command: Command) => done(await (await import("./channel.ts")).listChannels(command.optsWithGlobals())));
  channel
    .command("pairings")
    .description("who was let in by a code, and who holds one now")
    .action(async (_own, command: Command) => done(await (await import("./channel.ts")).listPairings(command.optsWithGlobals())));
  channel
    .command("pair")
    .description("let in whoever was told this code")
    .argument("<code>")
    .action(async (code: string, _own, command: Command) =>
      done(await (await import("./channel.ts")).pair(code, command.optsWithGlobals())),
    );
  channel
    .command("unpair")
    .description("no longer let in somebody who was paired")
    .argument("<channel>", "platform, or platform/account")
    .argument("<sender>", "the id that the platform gives them")
    .action(async (name: string, sender: string, _own, command: Command) =>
      done(await (await import("./channel.ts")).unpair(name, sender, command.optsWithGlobals())),
    );
}
