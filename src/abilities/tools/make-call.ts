import { asFailure, Failure, isFailure, messageOf } from "../../kernel/failure.ts";
import { firstOf } from "../../kernel/first-of.ts";
import type { Tx } from "../../store/engine.ts";
import { inWords } from "./in-words.ts";
import type { CallContext, Tool, ToolOutcome } from "./tool.ts";

/** How long a call may take to notice that its turn has ended; what it did until then is still recorded. */
const LETTING_GO_MS = 800;

/** Runs it within its time. What it throws is its outcome, unless the house itself is broken or the turn is no longer ours. */
export async function made(tool: Tool, args: unknown, context: CallContext): Promise<ToolOutcome> {
  context.signal.throwIfAborted();
  const ending = firstOf([context.signal], tool.timeoutMs);
  const late = (): Failure => lateFailure(tool, ending.isTimeUp() && !context.signal.aborted);
  let lettingGo: NodeJS.Timeout | undefined;
  const gone = new Promise<never>((_, reject) => {
    const lastMoment = (): void => {
      lettingGo = setTimeout(() => reject(late()), LETTING_GO_MS).unref();
    };
    ending.signal.addEventListener("abort", lastMoment, { once: true });
  });
  try {
    return await Promise.race([(tool.run as NonNullable<Tool["run"]>)(args, { ...context, signal: ending.signal }), gone]);
  } catch (error) {
    if (context.signal.aborted && !isFailure(error, "tool.timed_out")) throw context.signal.reason;
    if (ending.isTimeUp()) return asOutcome(late());
    if (isOfTheHouse(error)) throw error;
    return asOutcome(error);
  } finally {
    clearTimeout(lettingGo);
    ending.over();
  }
}

/**
 * For what happens in our own store. A refusal takes back whatever the call had written, and is then recorded by itself.
 */
export async function within<End>(
  transact: (body: (tx: Tx) => Promise<End>) => Promise<End>,
  body: (tx: Tx) => Promise<End>,
  refusalOf: (failure: Failure) => Promise<End>,
  record: (end: End) => Promise<End>,
): Promise<End> {
  let refusal: unknown;
  try {
    return await transact(async (tx) => {
      try {
        return await body(tx);
      } catch (error) {
        refusal = error;
        throw error;
      }
    });
  } catch (error) {
    if (error !== refusal || isOfTheHouse(error)) throw error;
    return record(await refusalOf(asFailure(error)));
  }
}

function lateFailure(tool: Tool, isTimeUp: boolean): Failure {
  const doubt = tool.effect === "pure" ? "" : "; it may have taken effect all the same";
  return new Failure(
    "tool.timed_out",
    isTimeUp ? `${tool.name} took longer than ${tool.timeoutMs / 1000} s${doubt}` : `${tool.name} was stopped${doubt}`,
  );
}

function asOutcome(error: unknown): ToolOutcome {
  const failure = error instanceof Failure ? error : new Failure("tool.failed", messageOf(error), { cause: error });
  return { output: inWords(failure), failed: true };
}

/** The store does not answer, or somebody else has the turn: not a tool's outcome. */
function isOfTheHouse(error: unknown): boolean {
  return error instanceof Failure && (error.code.startsWith("store.") || error.code === "fence.stale");
}
