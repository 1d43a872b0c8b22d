import type { Task } from "../contract/tasks.ts";
import { costOf, statusInColour } from "./task-words.ts";
import { harmless, oneLine } from "./terminal.ts";

const SHORT = 60;

/** Everything below a task as a tree, each with how it stands and what it took with everything below it. */
export function taskTree(top: string, below: readonly Task[]): string[] {
  const children = Map.groupBy(
    [...below].sort((a, b) => (a.id < b.id ? -1 : 1)),
    ({ parent }) => parent ?? "",
  );
  const lines: string[] = [];
  const draw = (id: string, indent: string): void => {
    const ours = children.get(id) ?? [];
    for (const [index, task] of ours.entries()) {
      const last = index === ours.length - 1;
      lines.push(`${indent}${last ? "└─" : "├─"} ${inALine(task)}`);
      draw(task.id, `${indent}${last ? "   " : "│  "}`);
    }
  };
  draw(top, "");
  return lines;
}

function inALine({ id, agent, status, usage, goal, step }: Task): string {
  const name = step === null ? "" : ` ${harmless(step)}`;
  return `${id}${name} ${harmless(agent ?? "workflow")} ${statusInColour(status)} ${costOf(usage)} ${oneLine(goal, SHORT)}`;
}
