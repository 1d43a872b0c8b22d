import { Failure } from "../../../kernel/failure.ts";
import type { Pools } from "../../../records/pools/pools.ts";
import type { Reads } from "../../../store/engine.ts";
import type { CallContext } from "../tool.ts";

/** The pool that a call means: the one it names, else the only one there is for it. */
export async function choosePool(
  pools: Pools,
  { caller }: Pick<CallContext, "caller">,
  named: string | undefined,
  verb: "read" | "write",
  reads?: Reads,
): Promise<string> {
  if (named !== undefined) return named;
  const known = (await pools.list(caller, reads)).filter(({ writable }) => verb === "read" || writable);
  const [only, ...others] = known.map(({ name }) => name);
  if (only === undefined) throw new Failure("request.not_found", `there is no pool that you may ${verb}`);
  if (others.length === 0) return only;
  throw new Failure("tool.bad_arguments", `pool: there are several that you may ${verb}; name one of ${[only, ...others].join(", ")}`);
}
