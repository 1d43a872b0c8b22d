import { basename } from "node:path";
import type { CallParts } from "../../abilities/tools/settle-call.ts";
import type { Tool } from "../../abilities/tools/tool.ts";
import type { Toolbox } from "../../abilities/tools/toolbox.ts";
import type { FreshContext } from "../../acts/begin-turn.ts";
import type { ReplyParts } from "../../acts/send-reply.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import type { TurnJournal } from "../../acts/turn-journal.ts";
import { agentIn } from "../../acts/turn-mail.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import { ANY_ARGUMENTS, verdictOf } from "../../deciders/policy/may-call.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Label } from "../../kernel/label.ts";
import type { Live } from "../../kernel/live.ts";
import type { Model, Models } from "../../kernel/model.ts";
import type { RunningTurns } from "../../kernel/running-turns.ts";
import type { Approvals } from "../../records/access/approvals.ts";
import type { AgentRegistry } from "../../records/agents/registry.ts";
import type { Revision } from "../../records/agents/revision.ts";
import { readContext, type StoredContext } from "../../records/journal/contexts.ts";
import { labelsOfRuns } from "../../records/journal/run-labels.ts";
import { readSteps, type Step } from "../../records/journal/steps.ts";
import { readSummaryState } from "../../records/journal/summaries.ts";
import { isByItself, type RunInput } from "../../records/sessions/runs.ts";
import { readTask, type StoredTask } from "../../records/tasks/task-rows.ts";
import { isLimited } from "../../records/usage/budgets.ts";
import { estimateOf } from "../../records/usage/estimate.ts";
import type { Budget } from "../../records/usage/limits.ts";
import { requestHashOf } from "../../turns/ask-model.ts";
import { between } from "../../turns/between.ts";
import type { CompactionParts } from "../../turns/compact.ts";
import { roomOf } from "../../turns/estimate.ts";
import { boundsOf, type History, historyOf, NO_HISTORY, newestHistory } from "../../turns/history.ts";
import type { KnownTurns } from "../../turns/known-turns.ts";
import { type ContextSources, openingOf, partsOf, type TurnFacts } from "../../turns/open-turn.ts";
import type { Turn } from "../../turns/run-turn.ts";
import { type Enclosure, type FileParts, fetchFiles } from "./fetch-files.ts";

export interface TurnParts extends Omit<CallParts, "policy">, TaskParts, ReplyParts {
  readonly agents: AgentRegistry;
  readonly models: Models;
  readonly toolbox: Toolbox;
  readonly approvals: Approvals;
  readonly sources: ContextSources;
  readonly past: KnownTurns;
  readonly live: Live;
  readonly running: RunningTurns;
  readonly reached: ReachedPoint;
  /** Lets whoever wrote see that the turn runs, where the platform can show it. */
  readonly shows?: (run: RunInput) => ShownTurn | undefined;
  /** Absent: what people send along cannot be fetched. */
  readonly files?: FileParts;
  /** A turn that takes longer is given up, so that its conversation can go on. */
  readonly turnMs: number;
}

/** A turn as people see it while it runs. Whatever goes wrong with that is no matter of the turn. */
export interface ShownTurn {
  /** Shows nothing more from here on: what the turn commits next is the last word. Takes some seconds at most. */
  quiet(how: "ends" | "waits"): Promise<void>;
  over(end: TurnSeen): void;
}

/** How an attempt ends for whoever looks on. Null: another one goes on with it. */
export type TurnSeen = "answered" | "failed" | "waits" | "stopped" | null;

export interface PreparedTurn {
  readonly run: RunInput;
  readonly task: StoredTask | null;
  readonly model: Model;
  /** Before whom a question about a call is put. */
  readonly askedOf: string;
  /** To be kept when the turn begins; null: it was, by an attempt before. */
  readonly fresh: FreshContext | null;
  /** The turn as it is told by what was kept; null: as it was kept before. */
  turnOf(begun: StoredContext | null, journal: TurnJournal): { readonly turn: Turn; readonly context: StoredContext };
}

/** Everything that a turn goes out from. Nothing has been written or asked yet. */
export async function prepareTurn(parts: TurnParts, run: RunInput, revision: Revision, signal: AbortSignal): Promise<PreparedTurn> {
  const agent = revision.agents.get(run.agent);
  if (!agent) throw new Failure("agent.unknown", `the agent "${run.agent}" is no longer in the config`);
  const { store } = parts;
  const policy = () => parts.agents.current.policy;
  // What it may call was settled when it was given; what the config says now counts beside it.
  const grant = run.granted ?? agent.grant;
  const task = run.task === null ? null : ((await readTask(store.read, run.task)) ?? null);
  const model = parts.models.resolve(run.model ?? task?.spec.model ?? agent.models);
  const tools = await parts.toolbox.of(agent, revision, signal);
  const kept = await readContext(store.read, run.id);
  const facts: TurnFacts = { run, task, agent, revision, grant, mayUse: mayUse(grant, policy) };
  const isKept = kept !== undefined && !kept.stale;
  const enclosed = await fetchFiles(parts.files, facts, model, isKept ? kept : null, signal);
  const told = isKept
    ? { context: kept, history: await historyOf(store.read, run, kept) }
    : await contextOf(parts, facts, tools, model, kept, enclosed);
  // What it is told is kept before its first step.
  const done = kept === undefined ? [] : await readSteps(store.read, run.id);
  const caller = agentIn(run, agent.roles, task?.step ?? null, task?.spec.scope?.pool);
  const callParts: CallParts = { clock: parts.clock, redaction: parts.redaction, spill: parts.spill, policy };
  const emit: Turn["emit"] = (chunk) => parts.live.publish(run.id, chunk);
  const priceOf: Turn["priceOf"] = (name) => parts.models.priceOf?.(name) ?? null;
  return {
    run,
    task,
    model,
    askedOf: askedOf(run, revision),
    // Whoever may not read mail is not told of it; a conversation that came with the message would forget it; a task is about itself alone.
    fresh: isKept
      ? null
      : { context: told.context, reader: facts.mayUse("mail_read") && !isByItself(run) && task === null ? caller : null },
    turnOf: (begun, journal) => {
      const context = begun ?? told.context;
      const opening = openingOf(context, told.history, run, enclosed);
      const labels = new Set([...(context.labels ?? []), ...labelsOf(done)]);
      const reserve = reserving(model, revision, journal);
      const compaction: CompactionParts = { model, opening, journal, labels, signal, wanted: context.compact ?? false, priceOf, reserve };
      const turn: Turn = {
        model,
        opening,
        done,
        maxSteps: agent.maxSteps,
        journal,
        signal,
        calls: {
          run: task?.spec.place ? { ...run, address: task.spec.place } : run,
          task,
          agent,
          revision,
          grant,
          tools,
          labels,
          signal,
          journal,
          workspace: undefined,
          progress: ({ place, tool }, text) => emit({ kind: "progress", place, tool, text }),
        },
        callParts,
        callerTools: new Set((run.request?.tools ?? []).map(({ name }) => name)),
        emit,
        priceOf,
        hashOf: (request) => requestHashOf(request, (message) => parts.past.written(message)),
        reserve,
        between: (steps) => between({ store, journal, run, caller, labels, emit, compaction, reached: parts.reached }, steps),
      };
      return { turn, context };
    },
  };
}

/** What the turn is told, as things are now. Of what it was told before, `stale`, only its mail and its place in the conversation stay. */
async function contextOf(
  parts: TurnParts,
  facts: TurnFacts,
  tools: ReadonlyMap<string, Tool>,
  model: Model,
  stale: StoredContext | undefined,
  enclosed: Enclosure,
): Promise<{ readonly context: StoredContext; readonly history: History }> {
  const { run, grant } = facts;
  const { read } = parts.store;
  // Kept as it is sent: what people have written into files may hold a secret.
  const told = await Promise.all([partsOf(parts.sources.system, facts), partsOf(parts.sources.recalled, facts)]);
  const [system, recalled] = parts.redaction.value(told);
  const instructions = run.request?.instructions;
  const offers = parts.toolbox.offersOf(tools, grant, parts.agents.current.policy);
  const { summary, asked } = isByItself(run) ? NO_SUMMARY : await readSummaryState(read, run.sessionKey, run.epoch);
  const { history, bounds } = stale
    ? { history: await historyOf(read, run, stale), bounds: boundsOf(stale) }
    : isByItself(run)
      ? { history: NO_HISTORY, bounds: { after: 0 } }
      : await newestHistory(parts.past, read, run, summary, offers.length > 0, roomOf(model, run.request?.settings.maxOutputTokens));
  const mail = stale?.recalled.filter(({ name }) => name === "mail") ?? [];
  const summarised = bounds.summary ? await labelsOfRuns(read, [bounds.summary.run]) : [];
  const labels = [
    ...new Set([
      ...history.turns.flatMap((turn) => turn.labels),
      ...summarised,
      ...[...system, ...recalled].flatMap((part) => part.labels ?? []),
      ...(stale?.labels ?? []),
      ...(facts.task?.spec.labels ?? []),
      ...(run.origin?.isExternal ? (["external"] as const) : []),
    ]),
  ];
  const context: StoredContext = {
    system: instructions ? [...system, { name: "caller", text: `Instructions of whoever asks:\n${instructions}` }] : system,
    recalled: [...recalled, ...parts.redaction.value(enclosed.told), ...mail],
    tools: offers,
    mail: stale?.mail ?? [],
    ...(enclosed.images.length > 0 ? { images: enclosed.images } : {}),
    ...(labels.length > 0 ? { labels } : {}),
    ...bounds,
    ...(asked ? { compact: true } : {}),
  };
  return { context, history };
}

/** Where nobody has a budget, nothing is set aside. */
function reserving(model: Model, { agents, settings }: Revision, journal: TurnJournal): Turn["reserve"] {
  const budgetOf = (agent: string): Budget => agents.get(agent)?.budget ?? {};
  if (!isLimited(...[...agents.values()].map(({ budget }) => budget))) return async (_step, request) => request;
  const written = (agent: string, key: keyof Budget): string => {
    const own = ["agents", agent, "budget", key];
    const path = settings.isWritten(own) ? own : ["budget", key];
    const origin = settings.originOf(path);
    return `${path.join(".")}${origin && settings.configFile ? ` in ${basename(settings.configFile)}:${origin.line}` : ""}`;
  };
  return async (step, request) => {
    const maxOutputTokens = await journal.reserve(step, { estimate: estimateOf(model, request), budgetOf, written });
    return maxOutputTokens === null ? request : { ...request, settings: { ...request.settings, maxOutputTokens } };
  };
}

const NO_SUMMARY = { summary: null, asked: false };

function mayUse(grant: Grant, policy: () => Revision["policy"]): (tool: string) => boolean {
  return (tool) => verdictOf({ grant, current: policy(), tool, args: ANY_ARGUMENTS }) !== "deny";
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
