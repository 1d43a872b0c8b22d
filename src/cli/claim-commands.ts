import { type Command, Option } from "commander";
import { milliseconds, wholeNumber } from "./spans.ts";

export function claimCommands(program: Command, done: (exit: number) => void): void {
  const claim = program.command("claim").description("hold a name for a time, so that others keep off");
  claim
    .command("take")
    .description("claim a resource; repeating it makes it last longer")
    .argument("<resource>", "a name such as repo/src/a.ts, or a pattern such as repo/src/**")
    .option("--ttl <time>", "for how long (default: 60s)", milliseconds)
    .option("--wait <time>", "stand in line for so long when it is held", milliseconds)
    .option("--shared", "together with others who share it")
    .action(async (resource: string, _own, command: Command) =>
      done(await (await import("./claim.ts")).takeClaim(resource, command.optsWithGlobals())),
    );
  claim
    .command("renew")
    .description("hold it for longer")
    .argument("<resource>")
    .argument("<fence>", "the number that taking it answered", wholeNumber)
    .option("--ttl <time>", "for how long from now (default: 60s)", milliseconds)
    .action(async (resource: string, fence: number, _own, command: Command) =>
      done(await (await import("./claim.ts")).renewClaim(resource, fence, command.optsWithGlobals())),
    );
  claim
    .command("release")
    .description("give it back")
    .argument("<resource>")
    .argument("<fence>", "the number that taking it answered", wholeNumber)
    .action(async (resource: string, fence: number, _own, command: Command) =>
      done(await (await import("./claim.ts")).releaseClaim(resource, fence, command.optsWithGlobals())),
    );
  claim
    .command("list")
    .description("who holds what, and until when")
    .argument("[prefix]", "only names that begin so")
    .addOption(new Option("--overlaps <resource>", "only what is in the way of claiming this"))
    .action(async (prefix: string | undefined, _own, command: Command) =>
      done(await (await import("./claim.ts")).listClaims(prefix, command.optsWithGlobals())),
    );
}
