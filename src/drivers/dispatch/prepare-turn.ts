import type { CallParts } from "../../abilities/tools/settle-call.ts";
import type { Tool } from "../../abilities/tools/tool.ts";
import type { Toolbox } from "../../abilities/tools/toolbox.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import { ANY_ARGUMENTS, mayCall } from "../../deciders/policy/may-call.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import type { Label } from "../../kernel/label.ts";
import type { Live } from "../../kernel/live.ts";
import type { Model, ModelMessage, Models } from "../../kernel/model.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Approvals } from "../../records/access/approvals.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { readContext, type StoredContext } from "../../records/journal/contexts.ts";
import { readSteps, type Step } from "../../records/journal/steps.ts";
import type { RunInput } from "../../records/sessions/runs.ts";
import { readTranscript } from "../../records/sessions/transcript.ts";
import type { Store } from "../../store/store.ts";
import { type ContextSources, offersOf, openingOf, partsOf, type TurnFacts } from "../../turns/open-turn.ts";
import type { Turn } from "../../turns/run-turn.ts";

/** How much of a conversation a turn is shown. */
const CONTEXT_ENTRIES = 100;

export interface TurnParts extends Omit<CallParts, "policy"> {
  readonly store: Store;
  readonly agents: AgentRegistry;
  readonly models: Models;
  readonly toolbox: Toolbox;
  readonly approvals: Approvals;
  readonly sources: ContextSources;
  readonly live: Live;
  readonly running: RunningTurns;
  readonly newId: NewId;
  readonly reached: ReachedPoint;
  /** A turn that takes longer is given up, so that its conversation can go on. */
  readonly turnMs: number;
}

export interface PreparedTurn {
  readonly run: RunInput;
  readonly model: Model;
  /** Before whom a question about a call is put. */
  readonly askedOf: string;
  /** To be kept when the turn begins; null: it was, by an attempt before. */
  readonly fresh: StoredContext | null;
  readonly mail: StoredContext["mail"];
  readonly turn: Omit<Turn, "journal" | "signal" | "calls"> & { readonly calls: Omit<Turn["calls"], "journal"> };
}

/** Everything that a turn goes out from. Nothing has been written or asked yet. */
export async function prepareTurn(parts: TurnParts, run: RunInput, revision: Revision, signal: AbortSignal): Promise<PreparedTurn> {
  const agent = revision.agents.get(run.agent);
  if (!agent) throw new Failure("agent.unknown", `the agent "${run.agent}" is no longer in the config`);
  const model = parts.models.resolve(run.model ?? agent.models);
  const policy = () => parts.agents.current.policy;
  const { grant } = agent;
  const tools = await parts.toolbox.of(agent, revision, signal);
  const kept = await readContext(parts.store.read, run.id);
  const context = kept ?? (await contextOf(parts, { run, agent, revision, grant, mayUse: mayUse(grant, policy) }, tools));
  const done = await readSteps(parts.store.read, run.id);
  const callParts: CallParts = { clock: parts.clock, redaction: parts.redaction, spill: parts.spill, policy };
  const { settings, tools: callers = [] } = run.request ?? {};
  const emit: Turn["emit"] = (chunk) => parts.live.publish(run.id, chunk);
  return {
    run,
    model,
    askedOf: askedOf(run, revision),
    fresh: kept ? null : context,
    mail: context.mail,
    turn: {
      model,
      opening: openingOf(context, await conversation(parts, run), run, { tools: callers, settings }),
      done,
      maxSteps: agent.maxSteps,
      calls: {
        run,
        agent,
        revision,
        grant,
        tools,
        labels: labelsOf(done),
        signal,
        workspace: undefined,
        progress: (place, text) => emit({ kind: "progress", place, tool: "", text }),
      },
      callParts,
      callerTools: new Set(callers.map(({ name }) => name)),
      emit,
      priceOf: (name) => parts.models.priceOf?.(name) ?? null,
      reserve: async () => {},
      between: async () => [],
    },
  };
}

async function contextOf(parts: TurnParts, facts: TurnFacts, tools: ReadonlyMap<string, Tool>): Promise<StoredContext> {
  const [system, recalled] = await Promise.all([partsOf(parts.sources.system, facts), partsOf(parts.sources.recalled, facts)]);
  const instructions = facts.run.request?.instructions;
  const told = instructions ? [...system, { name: "caller", text: `Instructions of whoever asks:\n${instructions}` }] : system;
  return { system: told, recalled, tools: offersOf(tools, facts.grant, parts.agents.current.policy), mail: [], after: 0 };
}

/** What was said before, and what is to be answered. */
async function conversation({ store }: TurnParts, run: RunInput): Promise<ModelMessage[]> {
  if (run.request?.messages) return [...run.request.messages];
  const history = await readTranscript(store.read, run.sessionKey, run.epoch, CONTEXT_ENTRIES);
  return [...history, { role: "user", text: run.input }];
}

function mayUse(grant: Grant, policy: () => Revision["policy"]): (tool: string) => boolean {
  return (tool) => mayCall({ grant, current: policy(), tool, args: ANY_ARGUMENTS }).verdict !== "deny";
}

function labelsOf(steps: readonly Step[]): Set<Label> {
  return new Set(
    steps.flatMap((step) => [...step.labels, ...(step.kind === "response" ? step.calls.flatMap(({ labels }) => labels) : [])]),
  );
}

/** The one who wrote, if he is an owner of this house; else its operator. */
function askedOf({ address }: RunInput, { settings }: Revision): string {
  const person = `${address.platform}:${address.peer}`;
  return settings.config.owners.includes(person) ? person : "operator";
}
