import { Command, CommanderError, InvalidArgumentError } from "commander";
import { agentsCommands } from "./agents-commands.ts";
import { agreeCommands } from "./agree-commands.ts";
import { approvalCommands } from "./approval-commands.ts";
import { canCommands } from "./can-commands.ts";
import { channelCommands } from "./channel-commands.ts";
import { claimCommands } from "./claim-commands.ts";
import { configCommands } from "./config-commands.ts";
import { doctorCommands } from "./doctor-commands.ts";
import { guardCommands } from "./guard-commands.ts";
import { mailCommands } from "./mail-commands.ts";
import { memoryCommands } from "./memory-commands.ts";
import { poolCommands } from "./pool-commands.ts";
import { routeCommands } from "./route-commands.ts";
import { runCommands } from "./run-commands.ts";
import { scheduleCommands } from "./schedule-commands.ts";
import { sessionCommands } from "./session-commands.ts";
import { taskCommands } from "./task-commands.ts";
import { explain, type GlobalOptions } from "./terminal.ts";
import { tokenCommands } from "./token-commands.ts";
import { usageCommands } from "./usage-commands.ts";
import { workflowCommands } from "./workflow-commands.ts";

const WRONG_USAGE = 2;

/** Runs one command and leaves its exit code to the process. Each command's own code is loaded when it is called. */
export async function main(args: readonly string[]): Promise<void> {
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  process.on("uncaughtException", (error) => process.exit(explain(error, false)));
  let exit = 0;
  const program = commands((code) => {
    exit = code;
  }).version((await import("../daemon/version.ts")).readVersion(), "-V, --version", "print the version");
  try {
    await program.parseAsync(args as string[], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) exit = error.exitCode === 0 ? 0 : WRONG_USAGE;
    else exit = explain(await withoutSecrets(error, program.opts<GlobalOptions>()), program.opts<GlobalOptions>().json === true);
  }
  process.exitCode = exit;
}

/** Also where what failed is the very thing that would tell. */
async function withoutSecrets(error: unknown, options: GlobalOptions): Promise<unknown> {
  const { redactedError } = await import("../daemon/redact-locally.ts");
  return redactedError(options, error);
}

function commands(done: (exit: number) => void): Command {
  const program = new Command("guildhall")
    .description("One daemon, many agents, one shared memory they can trust.")
    .option("--home <dir>", "where everything is kept (default: $GUILDHALL_HOME, else ~/.guildhall)")
    .option("--config <file>", "the config file (default: <home>/guildhall.yaml)")
    .option("--json", "machine-readable output")
    .exitOverride();
  program
    .command("start")
    .description("run the daemon")
    .option("--host <host>", "address to listen on (default: the config's, else 127.0.0.1)")
    .option("--port <port>", "port to listen on, 0 for a free one (default: the config's, else 4270)", port)
    .option("--name <name>", "what other nodes know this one by (default: the machine's name)")
    .option("--labels <labels>", "what `nodes:` of an agent may name besides, with commas between", (labels) =>
      labels.split(",").map((label) => label.trim()),
    )
    .action(async (_own, command: Command) => (await import("./start.ts")).start(command.optsWithGlobals()));
  program
    .command("chat")
    .description("talk to an agent; starts a private daemon when none runs")
    .option("--agent <id>", "which agent (default: the default agent)")
    .option("-m, --message <text>", "say this, print the answer, and end")
    .action(async (_own, command: Command) => done(await (await import("./chat.ts")).chat(command.optsWithGlobals())));
  program
    .command("demo")
    .description("three agents work through one shared memory while you watch; no key, no network")
    .option("--keep", "leave the home of the demo behind, to look around in")
    .action(async (_own, command: Command) => done(await (await import("./demo.ts")).demo(command.optsWithGlobals())));
  program
    .command("backup")
    .description("write everything that is stored to a file; the daemon may run meanwhile")
    .argument("<file>")
    .action(async (file: string, _own, command: Command) =>
      done(await (await import("./backup.ts")).backup(file, command.optsWithGlobals())),
    );
  program
    .command("restore")
    .description("read a backup into an empty home; no daemon may run on it")
    .argument("<file>")
    .action(async (file: string, _own, command: Command) =>
      done(await (await import("./restore.ts")).restore(file, command.optsWithGlobals())),
    );
  canCommands(program, done);
  configCommands(program, done);
  agentsCommands(program, done);
  tokenCommands(program, done);
  doctorCommands(program, done);
  poolCommands(program, done);
  claimCommands(program, done);
  mailCommands(program, done);
  guardCommands(program, done);
  agreeCommands(program, done);
  routeCommands(program, done);
  sessionCommands(program, done);
  runCommands(program, done);
  memoryCommands(program, done);
  taskCommands(program, done);
  approvalCommands(program, done);
  usageCommands(program, done);
  scheduleCommands(program, done);
  channelCommands(program, done);
  workflowCommands(program, done);
  return program;
}

function port(text: string): number {
  const number = Number(text);
  if (!/^\d{1,5}$/.test(text) || number > 65_535) throw new InvalidArgumentError("A port is a number from 0 to 65535.");
  return number;
}
