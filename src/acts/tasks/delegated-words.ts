/** What a delegated agent reads first, its task, and the line to end with (`withoutClosing` takes it off). Words for its model: the state of a task is told by its row. */
export function delegatedInput(id: string, from: string, goal: string, maySpawn: boolean): string {
  return [
    `<DELEGATED from agent ${from} | delegate_task ${maySpawn ? "ALLOWED" : "NOT ALLOWED"}>`,
    "",
    goal,
    "",
    `Your answer is read by ${from}, not by a person. When the task is done, end it with this line:`,
    `<TASK ${id} COMPLETED>`,
  ].join("\n");
}

/** A one-off child knows nothing but this. */
export function childInput(goal: string, context: string | undefined): string {
  return context === undefined || context.trim() === "" ? goal : `${goal}\n\nWhat you should know:\n${context}`;
}
