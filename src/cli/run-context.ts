import type { RunContext } from "../contract/run-context.ts";
import { harmless, paint } from "./terminal.ts";

const ASKED = { answer: "before answer", summary: "before the summary at", next: "to be asked next, as" } as const;

/** Exactly what the model was told, in its order, with what each part takes. */
export function contextInWords(context: RunContext): string {
  const { bold, dim, red } = paint(process.stdout);
  const { run, step, asked, model, exact, labels, parts, tools, messages, tokens, steps } = context;
  const title = (name: string, count: number): string => bold(`── ${harmless(name)} · ${count} tokens`);
  const shown = parts.filter(({ place }) => place !== "message");
  const lines = [
    `run ${run}, ${ASKED[asked]} ${step}${model === null ? "" : ` of ${harmless(model)}`}: about ${tokens.total} tokens`,
    dim(`system ${tokens.system} · tools ${tokens.tools} · recalled ${tokens.recalled} · conversation ${tokens.messages}`),
    ...(labels.length === 0 ? [] : [`carries: ${labels.join(", ")}`]),
    ...(exact === false ? [red("this differs from what was sent: something has changed since")] : []),
    ...shown.flatMap(({ name, place, text, tokens: count }) => [title(`${place}: ${name}`, count), harmless(text)]),
    ...(tools.length === 0 ? [] : [title(`tools: ${tools.length}`, tokens.tools)]),
    ...tools.map(({ name, description, tokens: count }) => `${harmless(name)} ${dim(`${count} tokens`)}  ${firstLine(description)}`),
    ...messages.flatMap((message) => [title(message.role, message.tokens), ...messageLines(message)]),
    ...(steps.length > 1 ? [dim(`other answers: --step ${steps.filter((one) => one !== step).join(", ")}`)] : []),
  ];
  return lines.join("\n");
}

function messageLines({ text, calls = [], results = [], images }: RunContext["messages"][number]): string[] {
  return [
    ...(text === "" || results.length > 0 ? [] : [harmless(text)]),
    ...calls.map(({ tool, args }) => `· ${harmless(tool)} ${harmless(args)}`),
    ...results.map(({ tool, text: result, failed }) => `${failed ? "✘" : "→"} ${harmless(tool)}: ${harmless(result)}`),
    ...(images === 0 ? [] : [`(${images} images)`]),
  ];
}

function firstLine(text: string): string {
  return harmless(text.split("\n")[0] ?? "");
}
