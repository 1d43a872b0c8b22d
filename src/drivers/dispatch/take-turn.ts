import { beginTurn } from "../../acts/begin-turn.ts";
import { commitTurn } from "../../acts/commit-turn.ts";
import { failTurn } from "../../acts/fail-turn.ts";
import { holdTurn } from "../../acts/hold-turn.ts";
import { TurnJournal } from "../../acts/turn-journal.ts";
import { waitTurn } from "../../acts/wait-turn.ts";
import { MAIL_CHAT } from "../../acts/wake-agent.ts";
import type { TurnPayload } from "../../acts/work-kinds.ts";
import { OWN_HOUSE } from "../../contract/wire.ts";
import { asFailure, Failure, isFailure } from "../../kernel/failure.ts";
import { firstOf } from "../../kernel/first-of.ts";
import type { Label } from "../../kernel/label.ts";
import { standstillOf } from "../../records/agents/standstill.ts";
import type { StoredContext } from "../../records/journal/contexts.ts";
import type { Step } from "../../records/journal/steps.ts";
import { type RunInput, readRunInput } from "../../records/sessions/runs.ts";
import type { ClaimedWork } from "../../store/work-queue.ts";
import { runTurn, type Turn, type TurnEnd } from "../../turns/run-turn.ts";
import type { Handler } from "./dispatcher.ts";
import { type PreparedTurn, prepareTurn, type TurnParts, type TurnSeen } from "./prepare-turn.ts";

/**
 * Takes one turn, from wherever an attempt before it has come. An answer is committed before anything acts on it; a turn that waits for a person
 * holds nothing.
 */
export function takeTurn(parts: TurnParts): Handler {
  const { store, live, reached } = parts;
  return async (item, lost) => {
    const { runId, causedBy } = item.payload as TurnPayload;
    const run = await readRunInput(store.read, runId);
    if (!run) throw new Failure("internal.bug", `work item ${item.id} asks for a turn of the run ${runId}, which is not there`);
    // The whole turn is taken by the agent as it is now, whatever the config says meanwhile.
    const revision = parts.agents.current;
    const standstill = standstillOf(revision.agents.get(run.agent));
    if (standstill?.waits) return holdTurn(store, reached, item, run, revision.number, standstill.failure, causedBy);
    let cause = causedBy;
    const { stopped, over } = parts.running.begin(runId);
    const silent = live.begin(runId);
    const shown = parts.shows?.(run);
    let seen: TurnSeen = null;
    const most = Math.min(parts.turnMs, Math.max(run.leftMs ?? parts.turnMs, 1));
    const ending = firstOf([lost, stopped], most);
    const { signal } = ending;
    try {
      if (standstill) throw standstill.failure;
      const prepared = await prepareTurn(parts, run, revision, signal);
      const begun = await beginTurn(store, item, run, prepared.model.name, prepared.fresh, prepared.task);
      cause = begun.cause;
      reached("turn.begun");
      const journal = new TurnJournal(parts, item, run, cause);
      const { turn, context } = prepared.turnOf(begun.context, journal);
      let done: readonly Step[] | null = turn.done;
      while (done !== null) {
        const end = isForNothing(run, context, turn) ? NOTHING_NEW : await runTurn({ ...turn, done });
        signal.throwIfAborted();
        await shown?.quiet(end.kind === "waits" ? "waits" : "ends");
        done = await settle(parts, item, prepared, journal, end.kind === "answered" ? { ...end, context } : end, turn.calls.labels, cause);
        seen = end.kind;
      }
    } catch (error) {
      // Handed back, taken over or stopped: somebody else has the last word, and this one has nothing more to say.
      if (stopped.aborted) seen = "stopped";
      if (lost.aborted || stopped.aborted || isFailure(error, "fence.stale")) return;
      const failure = !ending.isTimeUp()
        ? asFailure(error)
        : most < parts.turnMs
          ? new Failure("task.timed_out", "the task did not end in its time", { cause: error })
          : new Failure("turn.too_long", `the turn did not end within ${parts.turnMs / 1000} s`, { cause: error });
      await shown?.quiet("ends");
      const outcome = await failTurn(parts, item, run, failure, cause);
      if (outcome !== "failed") return;
      seen = "failed";
      if (run.task !== null) reached("task.closed");
    } finally {
      ending.over();
      silent();
      shown?.over(seen);
      over();
    }
  };
}

/** The mail that was to wake the agent was read by another turn meanwhile. */
function isForNothing({ address }: RunInput, { mail }: StoredContext, { done }: Turn): boolean {
  return address.platform === OWN_HOUSE && address.chat === MAIL_CHAT && mail.length === 0 && done.length === 0;
}

const NOTHING_NEW: TurnEnd = { kind: "answered", text: "There is no new mail.", steps: [], last: null, calls: [] };

/** Answers what the turn goes on from; null: it is over, or waits. */
async function settle(
  parts: TurnParts,
  item: ClaimedWork,
  { run, askedOf }: PreparedTurn,
  journal: TurnJournal,
  end: TurnEnd & { readonly context?: StoredContext },
  labels: Set<Label>,
  cause: number,
): Promise<readonly Step[] | null> {
  if (end.kind === "waits") {
    const { owners } = parts.agents.current.settings.config;
    const approvals = await waitTurn({ ...parts, owners, redact: parts.redaction.text }, item, run, end, askedOf, cause);
    for (const [index, { call }] of end.asked.entries())
      parts.live.publish(run.id, { kind: "asks", approval: approvals[index] as string, tool: call.tool, shown: call.args });
    return null;
  }
  parts.reached("turn.answered");
  const back = await commitTurn({ ...parts, journal }, item, run, { ...end, labels }, cause);
  if (back === null) return null;
  for (const label of back.labels) labels.add(label);
  parts.live.publish(run.id, { kind: "note", text: "its answer is not what was asked for: it goes on" });
  return back.steps;
}
