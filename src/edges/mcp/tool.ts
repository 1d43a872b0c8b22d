import { z } from "zod";
import type { AgreementParts } from "../../acts/decide-proposal.ts";
import type { MailParts } from "../../acts/send-mail.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import type { Workspace } from "../../contract/workspace.ts";
import type { Caller } from "../../kernel/caller.ts";
import { asFailure, Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Guests } from "../../records/access/guests.ts";
import type { Claims } from "../../records/claims/claims.ts";

/** What tools and resources work on. */
export interface McpParts extends AgreementParts, MailParts, TaskParts {
  readonly running: RunningTurns;
  readonly claims: Claims;
  readonly guests: Guests;
  readonly log: Log;
  readonly version: string;
}

/** One call of a tool. Who calls is known from the connection, never from the arguments. */
export interface ToolCall {
  readonly caller: Caller;
  readonly workspace: Workspace | undefined;
  /** Aborts when the client leaves or cancels, its token is revoked or the daemon stops. */
  readonly signal: AbortSignal;
}

/** For people and models a text, for programs the same as data. */
export interface ToolAnswer {
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint?: boolean; readonly openWorldHint: false };
  call(parts: McpParts, call: ToolCall, args: unknown): Promise<ToolAnswer>;
}

export function tool<Input extends z.ZodObject>(declared: {
  readonly name: string;
  /** When to use it, in a sentence or two. */
  readonly description: string;
  readonly input: Input;
  readonly changes: boolean;
  call(parts: McpParts, call: ToolCall, args: z.output<Input>): Promise<ToolAnswer>;
}): Tool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(declared.input, { io: "input" });
  return {
    name: declared.name,
    description: declared.description,
    inputSchema,
    annotations: { readOnlyHint: !declared.changes, ...(declared.changes ? { destructiveHint: false } : {}), openWorldHint: false },
    call: async (parts, call, args) => declared.call(parts, call, check(declared.input, args ?? {})),
  };
}

/** Checks against a schema of the contract; a refusal names the field. */
export function check<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue && issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  throw new Failure("request.malformed", `${where}${issue?.message ?? "not as described"}`);
}

export function resultOf({ text, data }: ToolAnswer) {
  return { content: [{ type: "text" as const, text }], structuredContent: { ...data } };
}

/** A refusal is a result too: the model reads what is wrong, what to do next and what is there instead. */
export function refusalOf(error: unknown, log: Log) {
  const failure = asFailure(error);
  // What went wrong inside is for the log; outside it would only tell about us.
  const inside = failure.code === "internal.bug";
  if (inside) log.error("a tool failed", { error: failure.stack ?? failure.message });
  const { code, hint, details } = failure;
  const message = inside ? "something went wrong inside" : failure.message;
  const lines = [`${message} [${code}]`, hint, ...(Object.keys(details).length > 0 ? [JSON.stringify(details)] : [])];
  return {
    content: [{ type: "text" as const, text: lines.join("\n") }],
    structuredContent: { error: { code, message, hint, retry: failure.entry.retry, details } },
    isError: true,
  };
}

export function inWords(at: number): string {
  return new Date(at).toISOString();
}
