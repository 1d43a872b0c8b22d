import type { z } from "zod";

/** What a tool may know of the call it serves. */
export interface ToolContext {
  /** The agent that calls. */
  readonly agent: string;
  /** The turn in which it calls. */
  readonly run: string;
  /** The same whenever this very call is made again, and no other call's: for a tool that is `keyed`. */
  readonly key: string;
  /** Aborts when the call takes too long or the turn is stopped. */
  readonly signal: AbortSignal;
  /** Shown to whoever watches the turn. */
  progress(text: string): void;
}

/** More than words. */
export interface ToolOutcome {
  /** What the model reads: text, or a value that is shown as JSON. */
  readonly output: unknown;
  /** `data` is base64. */
  readonly images?: readonly { readonly mediaType: string; readonly data: string }[];
  /** The call was made, and what came of it is an error. */
  readonly failed?: boolean;
  /** `external`: somebody else's words. `secret`: what must not leave the house. */
  readonly labels?: readonly ("external" | "secret")[];
}

export interface ToolDefinition<Schema extends z.ZodObject = z.ZodObject> {
  /** Small letters, digits and `_`; not the name of a built-in tool. Rules in the config name it so. */
  readonly name: string;
  /** What it is for, in words for the model. */
  readonly description: string;
  readonly parameters: Schema;
  /**
   * What becomes of a call whose end nobody has seen, because the program died. `pure`: it changes nothing and is made again. `keyed`: it is
   * made again with the same `context.key`. `unsafe` (the default): it is never made again, and the agent is told that nobody knows.
   */
  readonly effect?: "pure" | "keyed" | "unsafe";
  /** It acts on the world: after words from outside a person is asked first. By default all but `pure` ones do. */
  readonly consequential?: boolean;
  /** It can carry words out: after a secret a person is asked first. By default every tool can. */
  readonly egress?: boolean;
  /** 60 s by default. */
  readonly timeoutMs?: number;
  /** A text, a value, or a `ToolOutcome`. What it throws is told to the model as the error it is. */
  run(args: z.output<Schema>, context: ToolContext): Promise<string | object | ToolOutcome> | string | object | ToolOutcome;
}

/** A tool with whatever parameters. */
export type AnyTool = Omit<ToolDefinition, "run"> & { run(args: never, context: ToolContext): unknown };

/** A tool of your program, for `createGuildhall({ tools: [ … ] })`. */
export function defineTool<Schema extends z.ZodObject>(definition: ToolDefinition<Schema>): ToolDefinition<Schema> {
  return definition;
}
