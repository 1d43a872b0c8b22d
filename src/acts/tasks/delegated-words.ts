/** What a delegated agent reads first, its task, and the line to end with. Words for its model: the state of a task is told by its row. */
export function delegatedInput(id: string, from: string, goal: string, maySpawn: boolean): string {
  return [
    `<DELEGATED from agent ${from} | delegate_task ${maySpawn ? "ALLOWED" : "NOT ALLOWED"}>`,
    "",
    goal,
    "",
    `Your answer is read by ${from}, not by a person. When the task is done, end it with this line:`,
    closingLine(id),
  ].join("\n");
}

function closingLine(id: string): string {
  return `<TASK ${id} COMPLETED>`;
}

/** Whoever reads the result needs no closing line, whether or not it is there. */
export function withoutClosingLine(text: string, id: string): string {
  const line = closingLine(id);
  const at = text.trimEnd();
  return at.endsWith(line) ? at.slice(0, -line.length).trimEnd() : text;
}

/** A one-off child knows nothing but this. */
export function childInput(goal: string, context: string | undefined): string {
  return context === undefined || context.trim() === "" ? goal : `${goal}\n\nWhat you should know:\n${context}`;
}
