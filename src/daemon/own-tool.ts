import { z } from "zod";
import { defineTool, type Effect, type Tool, type ToolOutcome } from "../abilities/tools/tool.ts";
import { toolNameProblem } from "../deciders/policy/tool-name.ts";
import { Failure, isFailure } from "../kernel/failure.ts";

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

const TOOL_KEYS = [
  "name",
  "description",
  "parameters",
  "effect",
  "consequential",
  "egress",
  "timeoutMs",
  "run",
] satisfies (keyof OwnTool)[] as readonly string[];
const LONGEST_MS = 24 * 3_600_000;

const outcome = z.strictObject({
  output: z.unknown(),
  images: z.array(z.strictObject({ mediaType: z.string(), data: z.string() })).optional(),
  failed: z.boolean().optional(),
  labels: z.array(z.enum(["external", "secret"])).optional(),
});
const OUTCOME_KEYS = Object.keys(outcome.shape);

/**
 * A tool of the program around us as the house knows tools. What the program does not say is taken for the worst: it may not be made
 * twice, it acts on the world, and it can carry words out.
 */
export function ownTool(written: OwnTool): Tool {
  if (typeof written !== "object" || written === null) throw new Failure("usage.wrong", "a tool is an object, as defineTool makes it");
  const { name, description, effect = "unsafe", timeoutMs } = written;
  const problem = typeof name === "string" ? toolNameProblem(name) : "a tool needs a name";
  if (problem !== null) throw new Failure("usage.wrong", `the tool cannot be added: ${problem}`);
  const bad = (what: string): Failure => new Failure("usage.wrong", `the tool ${name} cannot be added: ${what}`);
  if (name.startsWith("mcp__")) throw bad("names that begin with mcp__ are those of MCP servers");
  if (typeof description !== "string" || description.trim() === "")
    throw bad("it needs a description, by which models know what it is for");
  if (typeof written.run !== "function") throw bad("it needs a function `run`");
  if (!["pure", "keyed", "unsafe"].includes(effect)) throw bad("its effect is pure, keyed or unsafe");
  const isTime = typeof timeoutMs === "number" && timeoutMs >= 1 && timeoutMs <= LONGEST_MS;
  if (timeoutMs !== undefined && !isTime) throw bad(`its timeoutMs is a number from 1 to ${LONGEST_MS}`);
  for (const key of ["consequential", "egress"] as const)
    if (!["boolean", "undefined"].includes(typeof written[key])) throw bad(`its ${key} is true or false`);
  const unknown = Object.keys(written).filter((key) => !TOOL_KEYS.includes(key));
  // An object of a class has whatever its class needs.
  if (unknown.length > 0 && Object.getPrototypeOf(written) === Object.prototype) throw bad(`it does not know ${unknown.join(", ")}`);
  const parameters = written.parameters as z.ZodObject;
  try {
    if ((z.toJSONSchema(parameters, { io: "input" }) as { type?: unknown }).type !== "object") throw new Error("expected z.object({ … })");
  } catch (error) {
    throw bad(`its parameters cannot be told to models: ${(error as Error).message}`);
  }
  const tool = defineTool({
    name,
    description,
    parameters,
    effect,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    consequential: written.consequential ?? effect !== "pure",
    egress: written.egress ?? true,
    run: async (args, { agent, run, key, signal, progress }) => {
      const context: OwnToolContext = { agent: agent.id, run: run.id, key, signal, progress };
      return outcomeOf(name, await written.run(args as never, context));
    },
  });
  return { ...tool, parse: (args) => checkedBy(tool, args) };
}

/** A check of the program's own that throws, or that takes a promise, is the tool's failure and not the house's. */
function checkedBy(tool: Tool, args: unknown): unknown {
  try {
    return tool.parse(args);
  } catch (error) {
    if (isFailure(error)) throw error;
    throw new Failure("tool.failed", `the arguments of ${tool.name} cannot be checked: ${(error as Error).message}`, { cause: error });
  }
}

function outcomeOf(name: string, answer: unknown): ToolOutcome {
  const isOutcome =
    typeof answer === "object" && answer !== null && "output" in answer && Object.keys(answer).every((key) => OUTCOME_KEYS.includes(key));
  if (!isOutcome) return { output: answer ?? "" };
  const { error } = outcome.safeParse(answer);
  if (!error) return answer as ToolOutcome;
  // Labels that cannot be read may have been meant to guard the words beside them.
  const [problem] = error.issues;
  throw new Failure("tool.failed", `${name} was called, but its answer cannot be used: ${problem?.path.join(".")}: ${problem?.message}`);
}
