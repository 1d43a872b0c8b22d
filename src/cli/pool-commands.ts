import type { Command } from "commander";
import { wholeNumber } from "./spans.ts";

export function poolCommands(program: Command, done: (exit: number) => void): void {
  const pool = program.command("pool").description("the memory that agents share");
  pool
    .command("list")
    .description("pools, or the entries of one")
    .argument("[pool]")
    .option("--prefix <text>", "only keys that begin so")
    .action(async (name: string | undefined, _own, command: Command) =>
      done(await (await import("./pool.ts")).listPools(name, command.optsWithGlobals())),
    );
  pool
    .command("get")
    .description("print an entry's value")
    .argument("<pool>")
    .argument("<key>")
    .option("--at <version>", "an older version", wholeNumber)
    .option("--full", "all of a value that was spilled")
    .action(async (name: string, key: string, _own, command: Command) =>
      done(await (await import("./pool.ts")).getEntry(name, key, command.optsWithGlobals())),
    );
  pool
    .command("put")
    .description("write an entry")
    .argument("<pool>")
    .argument("<key>")
    .argument("<value>", "JSON; what is not JSON is taken as text")
    .option("--if-version <version>", "only if it is at this version", wholeNumber)
    .option("--new", "only if there is no entry yet")
    .option("--ttl <time>", "for how long, such as 10m or 30d")
    .option("--note <text>", "why")
    .action(async (name: string, key: string, value: string, _own, command: Command) =>
      done(await (await import("./pool.ts")).putEntry(name, key, value, command.optsWithGlobals())),
    );
  pool
    .command("delete")
    .description("remove an entry; its history stays")
    .argument("<pool>")
    .argument("<key>")
    .option("--if-version <version>", "only if it is at this version", wholeNumber)
    .action(async (name: string, key: string, _own, command: Command) =>
      done(await (await import("./pool.ts")).deleteEntry(name, key, command.optsWithGlobals())),
    );
  pool
    .command("history")
    .description("every version of an entry")
    .argument("<pool>")
    .argument("<key>")
    .action(async (name: string, key: string, _own, command: Command) =>
      done(await (await import("./pool-lineage.ts")).showHistory(name, key, command.optsWithGlobals())),
    );
  pool
    .command("diff")
    .description("what changed between two versions")
    .argument("<pool>")
    .argument("<key>")
    .argument("<from>", "a version", wholeNumber)
    .argument("<to>", "a version", wholeNumber)
    .action(async (name: string, key: string, from: number, to: number, _own, command: Command) =>
      done(await (await import("./pool-lineage.ts")).showDifference(name, key, from, to, command.optsWithGlobals())),
    );
  pool
    .command("watch")
    .description("print changes as they happen")
    .argument("<pool>")
    .option("--after <seq>", "from this event on (default: from now on)", wholeNumber)
    .action(async (name: string, _own, command: Command) =>
      done(await (await import("./pool.ts")).watchPool(name, command.optsWithGlobals())),
    );
  pool
    .command("blame")
    .description("what a version was made from, who read it, and what was made from it")
    .argument("<pool>")
    .argument("<key>")
    .option("--at <version>", "an older version", wholeNumber)
    .action(async (name: string, key: string, _own, command: Command) =>
      done(await (await import("./pool-lineage.ts")).showBlame(name, key, command.optsWithGlobals())),
    );
  pool
    .command("retract")
    .description("withdraw a version and everything made from it")
    .argument("<pool>")
    .argument("<key>")
    .argument("<version>", "which one", wholeNumber)
    .requiredOption("--reason <text>", "why")
    .action(async (name: string, key: string, version: number, _own, command: Command) =>
      done(await (await import("./pool-lineage.ts")).retractVersion(name, key, version, command.optsWithGlobals())),
    );
  pool
    .command("endorse")
    .description("vouch for an entry that rests on input from outside")
    .argument("<pool>")
    .argument("<key>")
    .option("--at <version>", "an older version", wholeNumber)
    .requiredOption("--reason <text>", "why")
    .action(async (name: string, key: string, _own, command: Command) =>
      done(await (await import("./pool-lineage.ts")).endorseVersion(name, key, command.optsWithGlobals())),
    );
}
