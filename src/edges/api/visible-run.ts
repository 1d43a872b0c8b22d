import { RUN_ID } from "../../contract/runs.ts";
import type { Run } from "../../contract/wire.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { runsBeginning } from "../../records/sessions/open-runs.ts";
import { readRun } from "../../records/sessions/runs.ts";
import { usageOfRun } from "../../records/usage/usage.ts";
import type { Store } from "../../store/store.ts";

const WHOLE = 20;

/** By its id, or the beginning of one. What an agent may not see is not there. */
export async function visibleRun(store: Store, caller: Caller, id: string): Promise<Run> {
  const [only, another] = !RUN_ID.test(id) ? [] : id.length === WHOLE ? [id] : await runsBeginning(store.read, id);
  if (another !== undefined && caller.kind !== "agent")
    throw new Failure("request.not_found", `several runs begin with "${id}"`, { hint: "Write more of the id." });
  const found = only === undefined || another !== undefined ? undefined : await readRun(store.read, only);
  if (!found || (caller.kind === "agent" && found.agent !== caller.name)) throw new Failure("request.not_found", `there is no run "${id}"`);
  return found;
}

/** With what it cost, as far as that is known. */
export async function withUsage(store: Store, run: Run): Promise<Run> {
  return { ...run, usage: (await usageOfRun(store.read, run.id)) ?? run.usage };
}
