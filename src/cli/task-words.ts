import type { TaskStatus } from "../contract/tasks.ts";
import type { Usage } from "../contract/usage.ts";
import { dollars } from "./money.ts";
import { paint } from "./terminal.ts";

/** Where the price of a model is not known, it is at least what the others cost. */
export function costOf(usage: Usage | null): string {
  if (usage === null || usage.unpriced === 0) return dollars(usage?.costUsd ?? 0);
  return usage.costUsd === 0 ? "unknown" : `${dollars(usage.costUsd)} or more`;
}

export function statusInColour(status: TaskStatus): string {
  const { green, red, yellow, cyan, dim } = paint(process.stdout);
  switch (status) {
    case "completed":
      return green(status);
    case "failed":
    case "unknown":
      return red(status);
    case "waiting":
      return yellow(status);
    case "running":
      return cyan(status);
    default:
      return dim(status);
  }
}
