import type { LedgerEvent } from "../../src/contract/events.ts";
import type { WorkflowRun } from "../../src/contract/workflows.ts";
import type { Shown } from "../platforms/stand-in.ts";
import { checkChannels, wordsIn } from "./channels-check.ts";
import type { Facts, Fault, RunFact } from "./nodes-facts.ts";
import { BRANCHES, MOST_CHILDREN, MOST_DEPTH, MOST_TOKENS, TREE_TASKS } from "./nodes-world.ts";
import type { Exchange, Witness } from "./turns-witness.ts";
import { checkWorkflows } from "./workflows-check.ts";

type Counts = Record<string, number>;
const TURN_ENDS = new Set(["turn.completed", "turn.failed"]);
const TASK_ENDS = new Set(["task.completed", "task.failed", "task.cancelled", "task.lost"]);
const OVER = new Set(["completed", "failed", "cancelled", "refused"]);
/** A fault explains what happens a little after it: a request that was begun meanwhile comes late. */
const AFTER_MS = 2_000;
/** Why a turn fails whose owner was taken from it again and again. */
const GIVEN_UP = "its owner disappeared on every attempt";

export interface Checked {
  readonly problems: string[];
  readonly counts: Counts;
}

/** Holds everything that is known of a round against what must always hold. */
export function checkNodes(
  facts: Facts,
  witness: Pick<Witness, "done" | "asked">,
  shown: readonly Shown[],
  complaints: readonly string[],
): Checked {
  const runs = new Map(facts.runs.map((run) => [run.id, run]));
  const parts: Checked[] = [
    { problems: complaints.map((words) => `L7: the platform complains: ${words}`), counts: {} },
    checkRuns(facts, witness as Witness),
    checkTurnOrder(facts.events, runs),
    checkAsked(facts, witness.asked),
    checkClients(facts, runs),
    checkPlatform(facts, runs, shown),
    checkTrees(facts),
    checkRouting(facts),
  ];
  const counts: Counts = {};
  for (const part of parts) for (const [name, count] of Object.entries(part.counts)) counts[name] = (counts[name] ?? 0) + count;
  const left = facts.work.map(({ kind, state }) => `W6: work of the kind ${kind} is left, ${state}`);
  return { problems: [...parts.flatMap(({ problems }) => problems), ...left], counts };
}

/** W6: a workflow that is not completed has lost a branch that was given up, after every owner of it had disappeared. */
function checkRuns({ workflows, events }: Facts, witness: Witness): Checked {
  const isGivenUp = ([, { status, steps }]: [string, WorkflowRun]): boolean =>
    status === "failed" && steps.some(({ error }) => error?.message.includes(GIVEN_UP));
  const all = [...workflows];
  const { problems, counts } = checkWorkflows(new Map(all.filter((run) => !isGivenUp(run))), witness, events, BRANCHES);
  return { problems, counts: { ...counts, "workflows given up": all.filter(isGivenUp).length } };
}

/** S1 and S3, by the ledger: between the beginning of a turn and its end no other turn of its conversation begins. */
export function checkTurnOrder(events: readonly LedgerEvent[], runs: ReadonlyMap<string, Pick<RunFact, "session">>): Checked {
  const problems: string[] = [];
  const counts = { turns: 0, "taken up again": 0 };
  const open = new Map<string, string>();
  const over = new Set<string>();
  for (const { type, subject, data, seq } of events) {
    const run = subject[1] as string;
    const session = runs.get(run)?.session;
    if (!session || subject[0] !== "run") continue;
    if (TURN_ENDS.has(type)) {
      if (over.has(run)) problems.push(`S1: the turn ${run} ended twice`);
      over.add(run);
      if (open.get(session) === run) open.delete(session);
    }
    if (type !== "turn.started") continue;
    const { attempt } = data as { attempt: number };
    if (attempt === 1) counts.turns++;
    else counts["taken up again"]++;
    const other = open.get(session);
    if (other !== undefined && other !== run) problems.push(`S1: at ${seq} ${run} began in ${session} while ${other} was not over`);
    if (over.has(run)) problems.push(`S3: at ${seq} ${run} began again after its end`);
    open.set(session, run);
  }
  return { problems, counts };
}

/** S1, as the model sees it: two nodes ask for one conversation at once only where one of them was kept from knowing that it is not its any more. */
export function checkAsked({ faults, said }: Pick<Facts, "faults" | "said">, asked: readonly Exchange[]): Checked {
  const problems: string[] = [];
  const counts = { "asked by an owner that was overtaken": 0 };
  const chats = new Map(said.map(({ word, chat }) => [word, chat]));
  const sessionOf = ({ message }: Exchange): string =>
    /g\d+ of (\d)/.exec(message)?.[0].replace(/g\d+/, "client") ?? chats.get(wordsIn(message)[0] ?? "") ?? message;
  for (const [session, theirs] of Map.groupBy(asked, sessionOf))
    for (const [index, one] of theirs.entries())
      for (const other of theirs.slice(index + 1)) {
        if (other.began >= (one.ended ?? Number.POSITIVE_INFINITY)) break;
        if ([one, other].some((each) => isExplained(each, other.began, faults))) counts["asked by an owner that was overtaken"]++;
        else problems.push(`S1: ${one.node} and ${other.node} asked at once in ${session}: "${one.message}" and "${other.message}"`);
      }
  return { problems, counts };
}

function isExplained({ node, began }: Exchange, until: number, faults: readonly Fault[]): boolean {
  return faults.some(
    (fault) => (fault.node === null || fault.node === node) && fault.began <= until && fault.ended + AFTER_MS >= Math.min(began, until),
  );
}

/** E1 and S2: the same message is the same run whoever takes it; answered in the order in which the client was told that they are taken. */
function checkClients({ operations, transcript, runs: all, events }: Facts, runs: ReadonlyMap<string, RunFact>): Checked {
  const problems: string[] = [];
  const counts = { acknowledged: 0, "sent again": 0, "failed, with a reason": 0 };
  for (const [id, attempts] of Map.groupBy(operations, (operation) => operation.id)) {
    const results = new Set(attempts.flatMap(({ result }) => result ?? []));
    counts["sent again"] += attempts.length - 1;
    if (results.size > 1) problems.push(`E1: ${id} became ${[...results].join(" and ")}`);
    const [result] = results;
    if (result === undefined || attempts[0]?.kind === "workflow") continue;
    counts.acknowledged++;
    const run = runs.get(result);
    if (!run) problems.push(`D1: ${id} was acknowledged as ${result}, and there is no such run`);
    else if (run.status === "failed" && run.error) {
      counts["failed, with a reason"]++;
      if (!isGoodReason(run)) problems.push(`${id} failed: ${run.error}`);
    } else if (run.status !== "completed") problems.push(`${id} is ${run.status}: ${run.error}`);
  }
  for (const run of all) if (!OVER.has(run.status)) problems.push(`W6: the run ${run.id} is ${run.status}`);
  const admitted = events.filter(({ type }) => type === "message.admitted").map(({ data }) => data as { id: string; address: object });
  const keyOf = ({ id, address }: (typeof admitted)[number]): string =>
    JSON.stringify([id, (address as { platform: string }).platform, (address as { account?: string }).account]);
  for (const [key, each] of Map.groupBy(admitted, keyOf))
    if (each.length > 1) problems.push(`E2: ${key} was admitted ${each.length} times`);
  const numberOf = (text: string): number => Number(/go g(\d+) /.exec(text)?.[1] ?? Number.NaN);
  for (const [session, entries] of Map.groupBy(transcript, (entry) => entry.session)) {
    const numbers = entries.filter(({ role }) => role === "user").map(({ body }) => numberOf(body));
    const at = numbers.findIndex((number, index) => index > 0 && number <= (numbers[index - 1] as number));
    if (at > 0) problems.push(`S2: in ${session} message ${numbers[at]} was answered after ${numbers[at - 1]}`);
  }
  return { problems, counts };
}

/** Whoever is killed on every attempt is given up, and a tree that has spent its tokens ends. */
function isGoodReason({ error, agent }: RunFact): boolean {
  return error?.includes(GIVEN_UP) === true || (agent === "thrifty" && error?.includes("budget") === true);
}

/** E2 to E4: what people see at the platform. */
function checkPlatform({ said, events }: Facts, runs: ReadonlyMap<string, RunFact>, shown: readonly Shown[]): Checked {
  const about = (kind: LedgerEvent["type"]): string[] =>
    events.filter(({ type }) => type === kind).flatMap(({ subject }) => wordsIn(runs.get(subject[1] as string)?.input ?? ""));
  const books = {
    refused: about("message.refused"),
    unclear: about("reply.unclear"),
    abandoned: about("reply.abandoned"),
    failed: about("turn.failed"),
  };
  const placed = shown.map((one) => (one.topic === null ? one : { ...one, chat: `${one.chat}:${one.topic}` }));
  const { problems, counts } = checkChannels(said, placed, books);
  return { problems: problems.map((words) => `E3: ${words}`), counts: { said: said.length, ...counts } };
}

/** W4 and W6: how deep, how many at once, how much, whoever asks on whatever node; and each of them once. */
function checkTrees({ tasks, events, operations, spent, runs }: Facts): Checked {
  const problems: string[] = [];
  const counts = { "tasks of trees": 0, "refused by a limit": 0, "trees ended by their budget": 0 };
  const status = new Map(runs.map((run) => [run.id, run.status]));
  counts["refused by a limit"] = events.filter(({ type }) => type === "task.refused").length;
  const children = tasks.filter(({ kind }) => kind === "child");
  const parents = new Map(children.map((task) => [task.id, task.parent_run]));
  const open = new Map<string, number>();
  for (const { type, subject } of events) {
    const parent = parents.get(subject[1] as string);
    if (!parent) continue;
    if (type === "task.opened") open.set(parent, (open.get(parent) ?? 0) + 1);
    if (TASK_ENDS.has(type)) open.set(parent, (open.get(parent) ?? 0) - 1);
    if ((open.get(parent) ?? 0) > MOST_CHILDREN) problems.push(`W4: ${open.get(parent)} tasks of ${parent} were open at once`);
  }
  for (const { id, depth, status: state } of tasks) {
    if (depth > MOST_DEPTH) problems.push(`W4: the task ${id} is at depth ${depth}`);
    if (!OVER.has(state)) problems.push(`W6: the task ${id} is ${state}`);
  }
  const roots = new Map(
    operations.flatMap(({ kind, result }) => (result && (kind === "tree" || kind === "spend") ? [[result, kind]] : [])),
  );
  const below = childrenBelow(children, roots);
  for (const [root, kind] of roots) {
    const theirs = below.get(root) ?? [];
    const count = theirs.length;
    counts["tasks of trees"] += count;
    // Below a task that was given up nothing grows.
    const isWhole = status.get(root) === "completed" && theirs.every((task) => task.status === "completed");
    if (kind === "tree" && isWhole && count !== TREE_TASKS)
      problems.push(`W4: the tree of ${root} has ${count} tasks instead of ${TREE_TASKS}`);
    if (count > TREE_TASKS) problems.push(`W4: the tree of ${root} has ${count} tasks`);
    if (kind !== "spend") continue;
    if ((spent.get(root) ?? 0) > MOST_TOKENS) problems.push(`W4: ${spent.get(root)} tokens were spent for ${root}`);
    if (count < TREE_TASKS || status.get(root) === "failed") counts["trees ended by their budget"]++;
  }
  return { problems, counts };
}

function childrenBelow(children: Facts["tasks"], roots: ReadonlyMap<string, unknown>): Map<string, Facts["tasks"][number][]> {
  const byRun = new Map(children.map((task) => [task.run, task]));
  const below = new Map<string, Facts["tasks"][number][]>();
  for (const task of children) {
    let run = task.parent_run;
    while (run && !roots.has(run)) run = byRun.get(run)?.parent_run ?? null;
    if (run) below.set(run, [...(below.get(run) ?? []), task]);
  }
  return below;
}

/** S4: what was decided, and what every node would decide now. */
function checkRouting({ runs, routes }: Facts): Checked {
  const problems: string[] = [];
  if (new Set(routes).size > 1) problems.push(`S4: the nodes route differently: ${routes.join(" | ").slice(0, 500)}`);
  const decided = runs.filter(({ input }) => input.includes("say w"));
  for (const [address, theirs] of Map.groupBy(decided, (run) => placeOf(run.address))) {
    const ways = new Set(theirs.map(({ agent, session }) => `${agent} in ${session}`));
    if (ways.size > 1) problems.push(`S4: ${address} went to ${[...ways].join(" and to ")}`);
  }
  return { problems, counts: { "routing decisions": decided.length } };
}

/** Of an address, what routing sees. */
function placeOf(address: string): string {
  const { platform, account, chat, topic, peer } = JSON.parse(address) as Record<string, unknown>;
  return JSON.stringify([platform, account, chat, topic, peer]);
}
