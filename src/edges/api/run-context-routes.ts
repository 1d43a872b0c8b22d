import { type RunContext, runContext, runContextQuery } from "../../contract/run-context.ts";
import { Failure } from "../../kernel/failure.ts";
import type { ModelMessage } from "../../kernel/model.ts";
import type { ContextPart } from "../../records/journal/contexts.ts";
import { labelsOfRuns } from "../../records/journal/run-labels.ts";
import { readRunInput } from "../../records/sessions/runs.ts";
import type { Store } from "../../store/store.ts";
import { TokenCounter } from "../../turns/count-tokens.ts";
import { type ToldAt, toldAt } from "../../turns/told-at.ts";
import { OVERSEERS, type Route, route } from "./route.ts";
import { visibleRun } from "./visible-run.ts";

/** What a model was told. An agent sees its own. */
export function runContextRoutes(store: Store): Route[] {
  const counter = new TokenCounter();
  return [
    route({
      method: "GET",
      path: "/api/runs/:id/context",
      summary: "Exactly what the model was told before one of its answers, part by part, with tokens",
      allow: [...OVERSEERS, "agent"],
      query: runContextQuery,
      answers: { 200: runContext },
      handle: async ({ caller, params, query }) => {
        const { id, mergedInto } = await visibleRun(store, caller, params.id);
        const run = await readRunInput(store.read, mergedInto ?? id);
        const told = run && (await toldAt(store.read, run, query.step ?? null));
        if (!run || !told) throw new Failure("request.not_found", `no model was told anything for run "${id}" yet`);
        const labels = await labelsOfRuns(store.read, [run.id]);
        return { status: 200, body: { run: run.id, labels, ...(await inParts(told, counter)) } };
      },
    }),
  ];
}

type Shown = Omit<RunContext, "run" | "labels">;

async function inParts(told: ToldAt, counter: TokenCounter): Promise<Shown> {
  const { step, asked, model, exact, request, steps } = told;
  const parts = partsOf(told);
  const tools = request.tools ?? [];
  const texts = [...parts.map(({ text }) => text), ...tools.map((tool) => JSON.stringify(tool)), ...request.messages.map(whole)];
  const counts = await counter.count(texts);
  const counted = (index: number): number => counts[index] ?? 0;
  const shownParts = parts.map((part, index) => ({ ...part, tokens: counted(index) }));
  const shownTools = tools.map((tool, index) => ({ ...tool, tokens: counted(parts.length + index) }));
  const messages = request.messages.map((message, index) => ({ ...shown(message), tokens: counted(parts.length + tools.length + index) }));
  const tokens = {
    system: sum(shownParts.filter(({ place }) => place === "system")),
    tools: sum(shownTools),
    recalled: sum(shownParts.filter(({ place }) => place === "recalled")),
    messages: sum(messages),
  };
  const total = tokens.system + tokens.tools + tokens.recalled + tokens.messages;
  return { step, asked, model, exact, parts: shownParts, tools: shownTools, messages, tokens: { ...tokens, total }, steps: [...steps] };
}

function partsOf({ asked, context, request }: ToldAt): Omit<RunContext["parts"][number], "tokens">[] {
  if (asked === "summary") return request.system === null ? [] : [{ name: "summary", place: "system", text: request.system }];
  const named = (place: "system" | "recalled", { name, text, fleeting }: ContextPart) => ({
    name,
    text,
    place: fleeting ? ("message" as const) : place,
  });
  return [...context.system.map((part) => named("system", part)), ...context.recalled.map((part) => named("recalled", part))];
}

function whole(message: ModelMessage): string {
  if (message.role === "tool") return message.results.map(({ text }) => text).join("\n");
  const calls = message.role === "assistant" ? (message.calls ?? []) : [];
  return [message.text, ...calls.map(({ tool, args }) => `${tool} ${args}`)].join("\n");
}

function shown(message: ModelMessage): Omit<RunContext["messages"][number], "tokens"> {
  if (message.role === "tool")
    return {
      role: "tool",
      text: "",
      results: message.results.map(({ id, tool, text, failed }) => ({ id, tool, text, failed })),
      images: message.results.reduce((count, { images }) => count + (images?.length ?? 0), 0),
    };
  if (message.role === "user") return { role: "user", text: message.text, images: message.images?.length ?? 0 };
  return { role: "assistant", text: message.text, ...(message.calls?.length ? { calls: [...message.calls] } : {}), images: 0 };
}

function sum(counted: readonly { readonly tokens: number }[]): number {
  return counted.reduce((total, { tokens }) => total + tokens, 0);
}
