import { type Command, Option } from "commander";
import { TASK_STATUSES } from "../contract/tasks.ts";
import { milliseconds, wholeNumber } from "./spans.ts";

export function taskCommands(program: Command, done: (exit: number) => void): void {
  const task = program.command("task").description("what agents were asked to do for somebody");
  const status = (): Option => new Option("--status <status>", "only these").choices([...TASK_STATUSES]);
  task
    .command("list")
    .description("tasks, the newest first")
    .option("--agent <id>", "only those that this agent does")
    .addOption(status())
    .option("--below <id>", "only those below this one")
    .option("--limit <count>", "at most so many (default: 50)", wholeNumber)
    .action(async (_own, command: Command) => done(await (await import("./task.ts")).listTasks(command.optsWithGlobals())));
  task
    .command("show")
    .description("one task and everything below it, with what it took")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) => done(await (await import("./task.ts")).showTask(id, command.optsWithGlobals())));
  task
    .command("open")
    .description("give an agent a task; its id is printed")
    .argument("<agent>")
    .argument("<goal...>")
    .option("--wait <time>", "wait so long for its end, and print what came of it", milliseconds)
    .action(async (agent: string, words: string[], _own, command: Command) =>
      done(await (await import("./task.ts")).openTask(agent, words.join(" "), command.optsWithGlobals())),
    );
  task
    .command("cancel")
    .description("end a task and everything below it")
    .argument("<id>", "its id, or the beginning of it")
    .action(async (id: string, _own, command: Command) =>
      done(await (await import("./task.ts")).cancelTask(id, command.optsWithGlobals())),
    );
  task
    .command("search")
    .description("find tasks by words of goal, result and error, or by the beginning of an id")
    .argument("<query...>")
    .option("--agent <id>", "only those that this agent does")
    .addOption(status())
    .option("--limit <count>", "at most so many (default: 20)", wholeNumber)
    .option("--any", "one of the words is enough")
    .option("--operators", 'understand "a phrase", pref*, -without, AND, OR and NOT')
    .action(async (words: string[], _own, command: Command) =>
      done(await (await import("./task.ts")).searchTasks(words.join(" "), command.optsWithGlobals())),
    );
}
