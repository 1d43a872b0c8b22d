import type { Model, ModelCall, ModelRequest } from "../../src/kernel/model.ts";
import { tokensOfRequest, tokensOfText } from "../../src/turns/estimate.ts";
import { documentOf, endOf, factsIn, SCENES, type Scene, type SceneStep } from "./scenes.ts";

/** How results get from step to step. */
export type Arm = "summaries" | "half" | "inline" | "everything" | "declared" | "pointers";
export const POOL = "bench";

/** Of every so many sentences the parent keeps one when it sums up. */
const SUMMARY_KEEPS: Partial<Record<Arm, number>> = { summaries: 5, half: 2 };

export const ordersTo = (scene: number, arm: Arm): string => `Relay ${scene} ${arm}`;
export const goalOf = (scene: number, step: SceneStep): string => `Do step ${scene}${step.id}.`;
export const keyOf = (scene: number, id: string): string => `r${scene}${id}`;

/**
 * A model that follows rules, the same ones in every arm:
 * - a step writes its document; the last one names every fact it has in front of it, and no other;
 * - a step that is told of something it has not got in full asks for it once, with `context_read`;
 * - a parent starts everything that can start in one call, and hands on what its arm says: a summary of each result so far (of every five sentences
 *   one, of every two one), every result so far in full, or only where to find those that the step needs.
 * It counts as the gateway estimates: four bytes are a token.
 */
export const scriptedModel: Model = {
  name: "bench/relay",
  scripted: true,
  contextTokens: 4_000_000,
  price: { input: 0, output: 0 },
  async *stream(request) {
    const { text, calls } = answerTo(request);
    if (text !== "") yield { kind: "text", text };
    for (const call of calls) yield { kind: "call", call };
    const outputTokens = tokensOfText(text) + calls.reduce((sum, { tool, args }) => sum + tokensOfText(tool) + tokensOfText(args), 0);
    yield { kind: "usage", usage: { inputTokens: tokensOfRequest(request), outputTokens } };
  },
};

interface Answer {
  readonly text: string;
  readonly calls: readonly ModelCall[];
}

function answerTo(request: ModelRequest): Answer {
  const asked = request.messages.findLast((message) => message.role === "user");
  const words = asked?.role === "user" ? asked.text : "";
  const orders = /^Relay (\d+) (\w+)$/m.exec(words);
  if (orders) return asParent(request, Number(orders[1]), orders[2] as Arm);
  const goal = /Do step (\d+)([a-z])\./.exec(words);
  const scene = SCENES[Number(goal?.[1])];
  const step = scene?.steps.find(({ id }) => id === goal?.[2]);
  return goal && scene && step ? asStep(request, words, Number(goal[1]), scene, step) : said("There is nothing to do.");
}

function asStep(request: ModelRequest, words: string, number: number, scene: Scene, step: SceneStep): Answer {
  const results = request.messages.flatMap((message) => (message.role === "tool" ? message.results : []));
  const seen = [
    request.recalled ?? "",
    ...request.messages.map((message) => (message.role === "user" ? message.text : "")),
    ...results.map(({ text }) => text),
  ].join("\n");
  const isPointed = words.includes(`pool ${POOL}`);
  const pool = isPointed ? { pool: POOL } : {};
  // A parent's summary is all there is; where a document can be read, one that is not here in full is read.
  const canRead = isPointed || words.includes("This is the step");
  const lacking = step.reads.filter((id) => !seen.includes(endOf(number, id)));
  if (canRead && results.length === 0 && lacking.length > 0)
    return { text: "", calls: lacking.map((id) => call("context_read", { key: keyOf(number, id), full: true, ...pool }, id)) };
  const text = step === scene.steps.at(-1) ? [...factsIn(seen), documentOf(number, step)].join(". ") : documentOf(number, step);
  if (!isPointed) return said(text);
  const isWritten = results.some(({ tool }) => tool === "context_write");
  if (isWritten) return said(step === scene.steps.at(-1) ? text : `It is in the pool ${POOL} under ${keyOf(number, step.id)}.`);
  if (step === scene.steps.at(-1)) return said(text);
  return { text: "", calls: [call("context_write", { key: keyOf(number, step.id), value: text, ...pool }, "w")] };
}

function asParent({ messages }: ModelRequest, number: number, arm: Arm): Answer {
  const { steps } = SCENES[number] as Scene;
  const results = messages.flatMap((message) => (message.role === "tool" ? message.results.map(({ text }) => text) : []));
  const done = new Set<string>();
  for (const _result of results) for (const { id } of nextOf(steps, done)) done.add(id);
  const next = nextOf(steps, done);
  if (next.length === 0) return said("All steps are done.");
  const tasks = next.map((step) => ({ goal: goalOf(number, step), ...contextOf(number, arm, step, results) }));
  return { text: "", calls: [call("delegate_task", tasks.length === 1 ? (tasks[0] as object) : { tasks }, `d${results.length}`)] };
}

function nextOf(steps: readonly SceneStep[], done: ReadonlySet<string>): SceneStep[] {
  return steps.filter(({ id, reads }) => !done.has(id) && reads.every((read) => done.has(read)));
}

function contextOf(number: number, arm: Arm, step: SceneStep, results: readonly string[]): { readonly context?: string } {
  if (arm === "pointers") {
    const keys = step.reads.map((id) => keyOf(number, id));
    const reads = keys.length === 0 ? "" : ` What you need is there under ${keys.join(", ")}.`;
    return { context: `Write your result to the pool ${POOL} under ${keyOf(number, step.id)}.${reads}` };
  }
  if (results.length === 0) return {};
  const every = SUMMARY_KEEPS[arm];
  return { context: (every === undefined ? results : results.map((result) => summaryOf(result, every))).join("\n\n") };
}

function summaryOf(result: string, every: number): string {
  const sentences = result.split(". ");
  return sentences.filter((_, index) => index % every === 0).join(". ");
}

function call(tool: string, args: object, id: string): ModelCall {
  return { id, tool, args: JSON.stringify(args) };
}

function said(text: string): Answer {
  return { text, calls: [] };
}
