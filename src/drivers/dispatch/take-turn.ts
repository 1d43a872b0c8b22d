import { beginTurn } from "../../acts/begin-turn.ts";
import { commitTurn } from "../../acts/commit-turn.ts";
import { failTurn } from "../../acts/fail-turn.ts";
import { holdTurn } from "../../acts/hold-turn.ts";
import type { TurnPayload } from "../../acts/work-kinds.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { asFailure, Failure, isFailure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Live } from "../../kernel/live.ts";
import type { Model, Models } from "../../kernel/model.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { Personalities } from "../../records/agents/personality.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { standstillOf } from "../../records/agents/standstill.ts";
import { type RunInput, readRunInput } from "../../records/sessions/runs.ts";
import { readTranscript } from "../../records/sessions/transcript.ts";
import type { Store } from "../../store/store.ts";
import { runTurn } from "../../turns/run-turn.ts";
import type { Handler } from "./dispatcher.ts";

/** How much of a conversation a turn is shown. */
const CONTEXT_ENTRIES = 100;

export interface TurnParts {
  readonly store: Store;
  readonly agents: AgentRegistry;
  readonly personalities: Personalities;
  readonly models: Models;
  readonly live: Live;
  readonly running: RunningTurns;
  readonly newId: NewId;
  readonly reached: ReachedPoint;
  /** A turn that takes longer is given up, so that its conversation can go on. */
  readonly turnMs: number;
}

/** Takes one turn: the model answers, and the answer is committed before anything acts on it. */
export function takeTurn(parts: TurnParts): Handler {
  const { store, live, newId, reached } = parts;
  return async (item, lost) => {
    const { runId, causedBy } = item.payload as TurnPayload;
    const run = await readRunInput(store.read, runId);
    if (!run) throw new Failure("internal.bug", `work item ${item.id} asks for a turn of the run ${runId}, which is not there`);
    // The whole turn is taken by the agent as it is now, whatever the config says meanwhile.
    const revision = parts.agents.current;
    const standstill = standstillOf(revision.agents.get(run.agent));
    if (standstill?.waits) return holdTurn(store, reached, item, run, revision.number, standstill.failure, causedBy);
    let cause = causedBy;
    const timeUp = AbortSignal.timeout(parts.turnMs);
    const { stopped, over } = parts.running.begin(runId);
    const silent = live.begin(runId);
    try {
      if (standstill) throw standstill.failure;
      const { agent, model } = whoAnswers(revision, parts.models, run);
      cause = await beginTurn(store, item, run, model.name);
      const history = await readTranscript(store.read, run.sessionKey, run.epoch, CONTEXT_ENTRIES);
      const context = { system: await parts.personalities.of(agent), messages: [...history, { role: "user" as const, text: run.input }] };
      const answer = await runTurn(model, context, (text) => live.publish(runId, text), AbortSignal.any([lost, stopped, timeUp]));
      reached("turn.answered");
      await commitTurn(store, newId, reached, item, run, answer, cause);
    } catch (error) {
      // Handed back, taken over or stopped: somebody else has the last word, and this one has nothing more to say.
      if (lost.aborted || stopped.aborted || isFailure(error, "fence.stale")) return;
      const failure = timeUp.aborted
        ? new Failure("model.failed", `no answer within ${parts.turnMs / 1000} s`, { cause: error })
        : asFailure(error);
      await failTurn(store, item, run, failure, cause);
    } finally {
      silent();
      over();
    }
  };
}

function whoAnswers({ agents }: Revision, models: Models, run: RunInput): { agent: Agent; model: Model } {
  const agent = agents.get(run.agent);
  if (!agent) throw new Failure("agent.unknown", `the agent "${run.agent}" is no longer in the config`);
  return { agent, model: models.resolve(run.model ?? agent.model) };
}
