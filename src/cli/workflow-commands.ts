import { type Command, Option } from "commander";
import { WORKFLOW_STATES } from "../contract/workflows.ts";
import { wholeNumber } from "./spans.ts";

const ID = "its id, or the beginning of it";

export function workflowCommands(program: Command, done: (exit: number) => void): void {
  const workflow = program.command("workflow").description("several agents work on one thing, step by step, through a shared memory");
  workflow
    .command("run")
    .description("run a workflow and wait for its end; starts a private daemon when none runs")
    .argument("<file>", "the path of a file, or the name of one in <home>/workflows/")
    .option("--input <name=value>", "what the steps are told as {{input.name}}; JSON, else text; may be repeated", collect)
    .option("--input-json <json>", "all of it at once: a JSON object, a file with one, or - for what is piped in")
    .option("--detach", "print the id and do not wait; a daemon in the background goes on with it")
    .option("--idempotency-key <key>", "asked for again with the same key, it is the same run")
    .action(async (what: string, _own, command: Command) =>
      done(await (await import("./workflow-run.ts")).runWorkflow(what, command.optsWithGlobals())),
    );
  workflow
    .command("check")
    .description("every problem of a workflow with its place and what to write instead; exit 2 on an error")
    .argument("<file>", "the path of a file, or the name of one in <home>/workflows/")
    .action(async (what: string, _own, command: Command) =>
      done(await (await import("./workflow-check.ts")).checkWorkflow(what, command.optsWithGlobals())),
    );
  workflow
    .command("list")
    .description("runs, the newest first; with --files the workflows of this home")
    .option("--files", "the files in <home>/workflows/ instead of runs")
    .addOption(new Option("--status <status>", "only these").choices([...WORKFLOW_STATES]))
    .option("--limit <count>", "at most so many", wholeNumber)
    .option("--before <id>", "those before this one")
    .action(async (_own, command: Command) => done(await (await import("./workflow.ts")).listWorkflows(command.optsWithGlobals())));
  workflow
    .command("show")
    .description("one run: its steps as a tree, times, errors, outputs, what it took")
    .argument("<id>", ID)
    .option("--watch", "follow it to its end, until Ctrl-C")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./workflow.ts")).showWorkflow(id, command.optsWithGlobals())),
    );
  for (const [verb, does] of Object.entries(VERBS) as [keyof typeof VERBS, string][])
    workflow
      .command(verb)
      .description(does)
      .argument("<id>", ID)
      .action(async (id: string, _own, command: Command) =>
        done(await (await import("./workflow.ts")).changeWorkflow(id, verb, command.optsWithGlobals())),
      );
  workflow
    .command("approve")
    .description("let a step that waits for a person go on, or not")
    .argument("<id>", ID)
    .argument("<step>", "the step's id")
    .option("--reject", "it does not go on: the step fails")
    .option("--note <text>", "why; kept with the step")
    .action(async (id: string, step: string, _own, command: Command) =>
      done(await (await import("./workflow.ts")).approveStep(id, step, command.optsWithGlobals())),
    );
  workflow
    .command("rerun")
    .description("a new run that begins anew from some steps and takes over what does not rest on them; waits for its end")
    .argument("<id>", ID)
    .requiredOption("--from <step...>", "steps that run again, with all that rest on them")
    .option("--dry-run", "only tell: what is reused, what runs again, what would happen outside once more, what it may cost")
    .option("--detach", "print the new id and do not wait")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./workflow.ts")).rerunWorkflow(id, command.optsWithGlobals())),
    );
}

const VERBS = {
  cancel: "stop a run and everything that it does now",
  pause: "nothing new begins; what runs may finish",
  resume: "a paused run goes on; of one that failed or was cancelled, what was not done is tried again",
};

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
