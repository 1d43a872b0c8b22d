import { type ModelCallResult, type ModelMessage, type ModelRequest, wordsOf } from "../../../kernel/model.ts";
import { type Intent, intentsOf } from "./intents.ts";
import { sampleValue } from "./sample-value.ts";
import { MARK, smallTalk } from "./small-talk.ts";
import { workAsValue, workflowStepOf, workOf } from "./workflow-step.ts";

export interface OfflineAnswer {
  readonly text: string;
  readonly calls: readonly Intent[];
}

const QUOTED_CHARACTERS = 200;
const SHOWN_CHARACTERS = 2_000;
const CLOSING = /<TASK [\w-]+ COMPLETED>/;

/** By the last thing that was asked, and by what has been done for it since. */
export function offlineAnswer(request: ModelRequest): OfflineAnswer {
  const { messages, tools = [], settings = {} } = request;
  const at = messages.findLastIndex(({ role }) => role === "user");
  const said = wordsOf(messages[at]);
  const since = messages.slice(at + 1);
  const results = since.flatMap((message) => (message.role === "tool" ? message.results : []));
  const rounds = since.filter((message) => message.role === "assistant" && (message.calls ?? []).length > 0).length;
  const steps = plannedFor(said, request, results);
  const next = settings.toolChoice === "none" ? undefined : steps[rounds];
  const mayCall = next?.filter(({ tool }) => tools.some(({ name }) => name === tool) || isDictated(said, tool)) ?? [];
  // A step that went wrong is no ground for the next.
  if (next && mayCall.length === next.length && !results.some(({ failed }) => failed))
    return { text: rounds === 0 ? `I will call ${namesOf(next)}.` : `Now I will call ${namesOf(next)}.`, calls: next };
  if (rounds === 0 && settings.json !== undefined && settings.json !== true)
    return { text: JSON.stringify(sampleValue(settings.json, quoted(said))), calls: [] };
  if (rounds === 0 && settings.json === true) return { text: JSON.stringify({ said: quoted(said) }), calls: [] };
  return { text: closed(wordsFor(request, said, results, next), request), calls: [] };
}

function wordsFor(request: ModelRequest, said: string, results: readonly ModelCallResult[], next: readonly Intent[] | undefined): string {
  const { messages, tools = [] } = request;
  if (results.length > 0) return `${results.map(told).join("\n\n")}\n\n${MARK}`;
  const talk = smallTalk(said);
  if (talk !== undefined) return talk;
  const step = workflowStepOf(said);
  if (step !== null && Object.keys(step.schemas).length > 0)
    return JSON.stringify(workAsValue(step, Object.keys(step.schemas)[0] ?? "", {}));
  if (step !== null) return step.writes.map((key) => workOf(step, key, {})).join("\n\n");
  // Whoever has no tools at all is not told what is missing.
  if (next && tools.length > 0) return `For that I would call ${namesOf(next)}, which I was not given here. ${MARK}`;
  const asked = messages.filter((message) => message.role === "user").length;
  return `You said: "${quoted(said)}". That was message ${asked} of our conversation. ${MARK}`;
}

/** What is to be called, round by round. */
function plannedFor(said: string, request: ModelRequest, results: readonly ModelCallResult[]): readonly (readonly Intent[])[] {
  const { tools = [], settings = {} } = request;
  if (typeof settings.toolChoice === "object" || settings.toolChoice === "required") {
    const wanted = typeof settings.toolChoice === "object" ? settings.toolChoice.tool : undefined;
    const asked = intentsOf(said)[0]?.filter(({ tool }) => wanted === undefined || tool === wanted) ?? [];
    const offer = tools.find(({ name }) => wanted === undefined || name === wanted);
    if (asked.length > 0 || !offer) return [asked];
    return [[{ tool: offer.name, args: JSON.stringify(sampleValue(offer.parameters, quoted(said))) }]];
  }
  const step = workflowStepOf(said);
  if (step === null || !tools.some(({ name }) => name === "context_write")) return smallTalk(said) === undefined ? intentsOf(said) : [];
  const reads = step.reads.map((key): Intent => ({ tool: "context_read", args: JSON.stringify({ key }) }));
  const known = Object.fromEntries(step.reads.flatMap((key, index) => (results[index] ? [[key, valueIn(results[index].text)]] : [])));
  const writes = step.writes.map(
    (key): Intent => ({ tool: "context_write", args: JSON.stringify({ key, value: workAsValue(step, key, known) }) }),
  );
  const canRead = tools.some(({ name }) => name === "context_read");
  return reads.length === 0 || !canRead ? [writes] : [reads, writes];
}

/** Of an entry as it is read: what it holds, without what is known about it. */
function valueIn(text: string): string {
  try {
    const { value } = JSON.parse(text) as { readonly value?: unknown };
    return value === undefined ? text : typeof value === "string" ? value : JSON.stringify(value);
  } catch {
    return text;
  }
}

/** A call that somebody spelt out is made whether or not it was offered: what may be called is not decided here. */
function isDictated(said: string, tool: string): boolean {
  return new RegExp(`\\bcall (?:the tool )?\`?${tool.replace(/[^\w]/g, "\\$&")}\\b`, "i").test(said);
}

function told({ tool, text, failed }: ModelCallResult): string {
  const shown =
    text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS).toWellFormed()}… (${text.length} characters in all)`;
  return failed ? `${tool} did not work: ${shown}` : `${tool} answered: ${shown === "" ? "nothing" : shown}`;
}

/** A delegated task ends with the line it was told to end with. */
function closed(text: string, { system, recalled, messages }: ModelRequest): string {
  const said: readonly ModelMessage[] = messages.filter(({ role }) => role === "user");
  const line = CLOSING.exec([system, recalled, wordsOf(said.at(-1))].join("\n"))?.[0];
  return line === undefined ? text : `${text}\n${line}`;
}

function namesOf(intents: readonly Intent[]): string {
  return [...new Set(intents.map(({ tool }) => tool))].join(" and ");
}

function quoted(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= QUOTED_CHARACTERS ? line : `${line.slice(0, QUOTED_CHARACTERS).toWellFormed()}…`;
}
