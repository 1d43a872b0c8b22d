import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import type { Live } from "../../kernel/live.ts";
import type { Log } from "../../kernel/log.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";

export interface A2aParts {
  readonly tasks: TaskParts;
  readonly live: Live;
  readonly running: RunningTurns;
  readonly log: Log;
  readonly version: string;
}
