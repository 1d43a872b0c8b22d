import { z } from "zod";
import { defineTool, type Effect, type Tool, type ToolOutcome } from "../abilities/tools/tool.ts";
import { toolNameProblem } from "../deciders/policy/tool-name.ts";
import { Failure } from "../kernel/failure.ts";

/** What a program's tool may know of the call it serves. */
export interface OwnToolContext {
  /** The agent that calls. */
  readonly agent: string;
  readonly run: string;
  /** The same whenever this call is made again, and no other call's. */
  readonly key: string;
  /** Aborts when the call takes too long or the turn is stopped. */
  readonly signal: AbortSignal;
  /** For whoever watches; nothing of it is stored. */
  progress(text: string): void;
}

/** More than words: images, a failure that the model should read as one, words that nobody here answers for. */
export interface OwnToolOutcome {
  readonly output: unknown;
  readonly images?: readonly { readonly mediaType: string; readonly data: string }[];
  readonly failed?: boolean;
  readonly labels?: readonly ("external" | "secret")[];
}

export interface OwnTool {
  readonly name: string;
  readonly description: string;
  /** A zod schema of an object. */
  readonly parameters: unknown;
  readonly effect?: Effect | undefined;
  readonly consequential?: boolean | undefined;
  readonly egress?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
  run(args: never, context: OwnToolContext): unknown;
}

const OUTCOME_KEYS: readonly string[] = ["output", "images", "failed", "labels"] satisfies (keyof OwnToolOutcome)[];

/**
 * A tool of the program around us as the house knows tools. What the program does not say is taken for the worst: it may not be made
 * twice, it acts on the world, and it can carry words out.
 */
export function ownTool(written: OwnTool): Tool {
  const { name, description, effect = "unsafe", timeoutMs } = written;
  const problem = typeof name === "string" ? toolNameProblem(name) : "a tool needs a name";
  if (problem !== null) throw new Failure("usage.wrong", `the tool cannot be added: ${problem}`);
  const bad = (what: string): Failure => new Failure("usage.wrong", `the tool ${name} cannot be added: ${what}`);
  if (name.startsWith("mcp__")) throw bad("names that begin with mcp__ are those of MCP servers");
  if (typeof description !== "string" || description.trim() === "")
    throw bad("it needs a description, by which models know what it is for");
  if (typeof written.run !== "function") throw bad("it needs a function `run`");
  if (!["pure", "keyed", "unsafe"].includes(effect)) throw bad("its effect is pure, keyed or unsafe");
  const parameters = written.parameters as z.ZodObject;
  try {
    if ((z.toJSONSchema(parameters, { io: "input" }) as { type?: unknown }).type !== "object") throw new Error("expected z.object({ … })");
  } catch (error) {
    throw bad(`its parameters cannot be told to models: ${(error as Error).message}`);
  }
  return defineTool({
    name,
    description,
    parameters,
    effect,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    consequential: written.consequential ?? effect !== "pure",
    egress: written.egress ?? true,
    run: async (args, { agent, run, key, signal, progress }) => {
      const context: OwnToolContext = { agent: agent.id, run: run.id, key, signal, progress };
      return outcomeOf(await written.run(args as never, context));
    },
  });
}

function outcomeOf(answer: unknown): ToolOutcome {
  if (typeof answer !== "object" || answer === null || !("output" in answer)) return { output: answer ?? "" };
  return Object.keys(answer).every((key) => OUTCOME_KEYS.includes(key)) ? (answer as ToolOutcome) : { output: answer };
}
