import type { ReachedPoint } from "../../kernel/crash-points.ts";
import type { Schedules } from "../../records/schedules/schedules.ts";
import type { TaskParts } from "../tasks/task-parts.ts";

export interface ScheduleParts {
  readonly tasks: TaskParts;
  readonly schedules: Schedules;
  readonly reached: ReachedPoint;
}
