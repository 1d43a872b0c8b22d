import { z } from "zod";
import { text } from "../../../contract/text.ts";
import { readTodoList, replaceTodoList, type TodoItem } from "../../../records/sessions/todo-lists.ts";
import { defineTool, type Tool } from "../tool.ts";

const MAX_ITEMS = 50;
const MAX_OPTIONS = 10;
const MARKS: Readonly<Record<TodoItem["state"], string>> = { pending: "[ ]", doing: "[>]", done: "[x]" };

/** `todo` and `clarify`: what concerns this conversation alone. */
export function sessionTools(): Tool[] {
  return [todoTool(), clarifyTool()];
}

function todoTool(): Tool {
  return defineTool({
    name: "todo",
    description: "Your list of what is to be done in this conversation. Without items it is shown; with items it is replaced by them.",
    parameters: z.strictObject({
      items: z
        .array(z.strictObject({ text: text(500), state: z.enum(["pending", "doing", "done"]).default("pending") }))
        .max(MAX_ITEMS)
        .optional(),
    }),
    effect: "keyed",
    runIn: async (tx, { items }, { run }) => {
      if (items) await replaceTodoList(tx, run.sessionKey, run.epoch, run.id, items);
      const list = items ?? (await readTodoList(tx, run.sessionKey, run.epoch));
      return { output: list.length === 0 ? "The list is empty." : list.map(inWords).join("\n") };
    },
  });
}

function inWords({ text: words, state }: TodoItem): string {
  return `${MARKS[state]} ${words.replace(/\s+/g, " ")}`;
}

function clarifyTool(): Tool {
  return defineTool({
    name: "clarify",
    description:
      "Ask the user something that you must know before you go on. Your turn ends with the question; the next message is the answer.",
    parameters: z.strictObject({
      question: text(4_000),
      options: z.array(text(500)).max(MAX_OPTIONS).optional().describe("Answers to choose from."),
    }),
    effect: "pure",
    run: ({ question, options = [] }) => {
      const asked = [question, ...options.map((option, index) => `${index + 1}. ${option}`)].join("\n");
      return { output: asked, ends: asked };
    },
  });
}
