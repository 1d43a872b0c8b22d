import { Failure } from "../../../kernel/failure.ts";
import type { Grant } from "../../../records/pools/access.ts";
import type { Pools } from "../../../records/pools/pools.ts";
import type { Reads } from "../../../store/engine.ts";
import type { CallContext } from "../tool.ts";

/** The pool that a call means: the one it names, else the only one there is for it. In a task that was given one, that is the only one. */
export async function choosePool(
  pools: Pools,
  { caller, task }: Pick<CallContext, "caller" | "task">,
  named: string | undefined,
  verb: "read" | "write",
  reads?: Reads,
): Promise<string> {
  const given = task?.spec.scope?.pool;
  if (given !== undefined) {
    if (named === undefined || named === given) return given;
    throw new Failure("request.forbidden", `this task works with the pool "${given}" and no other; leave out \`pool\``);
  }
  if (named !== undefined) return named;
  const known = (await pools.list(caller, reads)).filter(({ writable }) => verb === "read" || writable);
  const [only, ...others] = known.map(({ name }) => name);
  if (only === undefined) throw new Failure("request.not_found", `there is no pool that you may ${verb}`);
  if (others.length === 0) return only;
  throw new Failure("tool.bad_arguments", `pool: there are several that you may ${verb}; name one of ${[only, ...others].join(", ")}`);
}

/** What the task has declared; undefined: its agent's rights are all there is to ask. */
export function grantOf({ task }: Pick<CallContext, "task">): { readonly grant?: Grant } {
  const scope = task?.spec.scope;
  return scope ? { grant: { reads: scope.reads, writes: scope.writes } } : {};
}
