import type { z } from "zod";
import type { ModelSettings, ToolOffer } from "../../../kernel/model.ts";
import type { BroughtConversation } from "./conversation.ts";
import { badRequest } from "./openai-error.ts";

/** One request to an agent, whichever of the two APIs it came by. */
export interface Asked {
  readonly agent: string;
  readonly conversation: BroughtConversation;
  readonly tools: readonly ToolOffer[];
  readonly settings: ModelSettings;
  readonly stream: boolean;
}

/** In the declared shape, or a refusal that names the field. */
export function read<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw badRequest(null, "the body must be a JSON object");
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = deepest(result.error.issues);
  throw badRequest(path.length === 0 ? null : inWords(path), message);
}

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Of something that fits no member of a union, the member that it came nearest to tells what is wrong. */
function deepest(issues: readonly z.core.$ZodIssue[]): Problem {
  const problems = issues.slice(0, 20).map((issue): Problem => {
    if (issue.code !== "invalid_union" || issue.errors.length === 0) return issue;
    const inner = issue.errors
      .filter((some) => some.length > 0)
      .map((some) => deepest(some))
      .reduce((best, one) => (one.path.length > best.path.length ? one : best), { path: [], message: issue.message });
    return { path: [...issue.path, ...inner.path], message: inner.path.length === 0 ? wanted(issue) : inner.message };
  });
  return problems[0] ?? { path: [], message: "the body is malformed" };
}

function wanted(issue: z.core.$ZodIssueInvalidUnion): string {
  const messages = issue.errors.flatMap((some) => (some[0] ? [some[0].message.replace(/^Invalid input: /, "")] : []));
  return messages.length === 0 ? issue.message : [...new Set(messages)].slice(0, 4).join(", or ");
}

function inWords(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text === "" ? String(part) : `${text}.${String(part)}`),
    "",
  );
}

/** The same name twice could not be told apart in a call. */
export function refuseTwins(tools: readonly ToolOffer[]): void {
  const names = new Set<string>();
  for (const [index, { name }] of tools.entries()) {
    if (names.has(name)) throw badRequest(`tools[${index}]`, `the tool "${name}" is there twice`);
    names.add(name);
  }
}

export function refuseUnknownChoice(choice: ModelSettings["toolChoice"], tools: readonly ToolOffer[]): void {
  if (typeof choice === "object" && !tools.some(({ name }) => name === choice.tool))
    throw badRequest("tool_choice", `the tool "${choice.tool}" is not among the tools`);
  if (choice === "required" && tools.length === 0) throw badRequest("tool_choice", "a call is required, and there are no tools");
}

export function jsonOf(type: string | undefined, schema: Readonly<Record<string, unknown>> | null | undefined): ModelSettings["json"] {
  if (type === "json_schema") return schema ?? true;
  return type === "json_object" ? true : undefined;
}

/** Without the fields that were left out or are null. */
export function given<Fields extends Record<string, unknown>>(fields: Fields): { [Key in keyof Fields]?: NonNullable<Fields[Key]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)) as never;
}
