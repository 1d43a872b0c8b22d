import { type Command, Option } from "commander";
import { CATCH_UP } from "../contract/schedules.ts";

export function scheduleCommands(program: Command, done: (exit: number) => void): void {
  const schedule = program.command("schedule").description("what agents do by the clock");
  schedule
    .command("list")
    .description("every job, and when it is due next")
    .option("--agent <id>", "only of this agent")
    .action(async (_own, command: Command) => done(await (await import("./schedule.ts")).listJobs(command.optsWithGlobals())));
  schedule
    .command("add")
    .description("add a job, or replace the agent's job of this name")
    .requiredOption("--agent <id>", "who does it")
    .requiredOption("--cron <times>", 'when: "0 9 * * 1-5", with seconds "*/10 * * * * *", @daily, or one moment 2030-12-24T18:00:00')
    .option("--tz <zone>", "the time zone that is meant, such as Europe/Zurich (default: UTC)")
    .addOption(new Option("--catch-up <rule>", "what becomes of times that pass while it cannot run (default: once)").choices(CATCH_UP))
    .argument("<name>")
    .argument("<goal...>", "what is to be done each time")
    .action(async (name: string, goal: string[], _own, command: Command) =>
      done(await (await import("./schedule.ts")).addJob(name, goal.join(" "), command.optsWithGlobals())),
    );
  const verbs = {
    remove: "remove a job; a task of it that is open goes on",
    pause: "start nothing of this job until it is resumed",
    resume: "let it be due again, from now on",
    run: "start its task now, besides its times",
  } as const;
  for (const [verb, does] of Object.entries(verbs) as [keyof typeof verbs, string][])
    schedule
      .command(verb)
      .description(does)
      .argument("<job>", "its id, the beginning of it, its name, or agent/name")
      .action(async (job: string, _own, command: Command) =>
        done(await (await import("./schedule.ts")).changeJob(verb, job, command.optsWithGlobals())),
      );
}
