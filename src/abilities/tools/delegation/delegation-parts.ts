import type { TaskParts } from "../../../acts/tasks/task-parts.ts";
import type { Models } from "../../../kernel/model.ts";
import type { Tasks } from "../../../records/tasks/tasks.ts";

export interface DelegationParts {
  readonly tasks: TaskParts;
  readonly models: Pick<Models, "resolve">;
  /** As agents may see them. */
  readonly seen: Tasks;
}
