import { randomBytes } from "node:crypto";
import { systemClock } from "../../../kernel/clock.ts";
import { idSource } from "../../../kernel/ids.ts";
import { systemRandom } from "../../../kernel/random.ts";
import { Approvals } from "../../../records/access/approvals.ts";
import { Memory } from "../../../records/memory/memory.ts";
import { Sandboxes } from "../../../records/workspaces/sandbox/sandboxes.ts";
import { Workspaces } from "../../../records/workspaces/workspaces.ts";
import type { Whereabouts } from "../../../settings/home.ts";
import { openStore } from "../../../store/store.ts";
import { startDaemon } from "../../daemon.ts";
import { Actor } from "./actor.ts";
import { type Attempt, FAILING } from "./attempt.ts";
import { Canaries } from "./canaries.ts";
import { type DescribedOperation, describedOperations, httpAttempts } from "./http-attempts.ts";
import { jailAttempts } from "./jail-attempts.ts";
import { mcpAttempts } from "./mcp-attempts.ts";
import { ask, cursorsOf, plant, type Tenant, WORD, withWaitingMail } from "./plant.ts";
import { RecordingModel } from "./recording-model.ts";
import { ownFileInside, sandboxAttempts } from "./sandbox-attempts.ts";
import { markOf, type ScratchHome, scratchHome } from "./scratch-home.ts";

export interface PairReport {
  readonly attacker: string;
  readonly victim: string;
  /** The operator lets the attacker see the victim's sessions: what it then sees is no leak. */
  readonly sees: boolean;
  readonly attempts: readonly Attempt[];
}

export interface IsolationReport {
  readonly ok: boolean;
  readonly agents: readonly string[];
  readonly quarantined: readonly string[];
  /** Of how many pairs there are, how many were tried. */
  readonly pairs: readonly PairReport[];
  readonly possiblePairs: number;
  /** Ways by which an agent does not even find its own things: attempts of that kind show nothing. */
  readonly blind: readonly string[];
}

const PAIRS_PER_AGENT = 30;
/** A pair takes half a second or more: so many in all, or as many as there are agents. */
const MAX_PAIRS = 250;
const SESSION_KINDS = [
  "session",
  "name of its session",
  "name of its run",
  "task",
  "name of its task",
  "workflow",
  "step",
  "name of its workflow",
];
/** By each of these an agent must find what is its own, or the refusals of others prove nothing. */
const SEEING = [
  "files",
  "programs",
  "runs",
  "sessions",
  "tasks",
  "workflows",
  "schedules",
  "pools",
  "mail",
  "memory",
  "proposals",
  "idempotency",
  "mcp",
  "prompts",
];

/** Every agent against every other, on a copy in which nothing is real. Starts a daemon of its own and leaves nothing behind. */
export async function testIsolation(where: Whereabouts, tell: (done: number, of: number) => void = () => {}): Promise<IsolationReport> {
  await using undo = new AsyncDisposableStack();
  const chance = (): string => randomBytes(8).toString("hex");
  const known = new Map<string, Canaries>();
  const canariesOf = (agent: string): Canaries =>
    known.get(agent) ?? (known.set(agent, new Canaries(agent, chance)).get(agent) as Canaries);
  const scratch = scratchHome(where, canariesOf);
  // Also when the process is asked to end in the middle of it.
  const remove = (): void => scratch.remove();
  process.once("exit", remove);
  undo.defer(() => {
    process.off("exit", remove);
    remove();
  });
  const model = new RecordingModel();
  const daemon = await startDaemon({ home: scratch.path, port: 0, host: "127.0.0.1", logLevel: "error", providers: [model.provider] });
  undo.defer(() => daemon.stop());
  const store = await openStore(`sqlite:${scratch.path}/state.db`);
  undo.defer(() => store.close());

  const newId = idSource(systemClock, systemRandom);
  const workspaces = await Workspaces.of(scratch.path, { clock: systemClock, newId });
  const sandboxes = new Sandboxes(workspaces, { newId, node: process.execPath });
  undo.defer(() => sandboxes.close());
  const operator = new Actor("operator", daemon.url, daemon.operatorToken);
  const parts = {
    url: daemon.url,
    home: scratch.path,
    operator,
    approvals: new Approvals(store, newId),
    store,
    memory: new Memory(store, newId),
    workspaces,
    chance,
  };
  const pairs = pairsOf(scratch.agents);
  const tenants = new Map<string, Tenant>();
  for (const id of new Set(pairs.flat())) tenants.set(id, await plant(parts, scratch.owner(id), canariesOf(id)));
  const cursors = await cursorsOf(operator);
  for (const [id, tenant] of tenants) tenants.set(id, { ...tenant, cursors });
  const operations = await describedOperations(operator);
  const reports: PairReport[] = [];
  for (const [attackerId, victimId] of pairs) {
    const attacker = tenants.get(attackerId) as Tenant;
    const victim = await withWaitingMail(parts, tenants.get(victimId) as Tenant);
    const sees = scratch.sees(attackerId, victimId);
    const forbidden = sees ? victim.canaries.without(SESSION_KINDS) : victim.canaries;
    const attempts = [
      ...(await jailAttempts({ workspaces, home: scratch.path }, attacker, victim, forbidden)),
      ...(await sandboxAttempts({ sandboxes, home: scratch.path }, scratch.owner(attackerId), victim, forbidden)),
      ...(await httpAttempts(operations, attacker, victim, forbidden)),
      ...(await mcpAttempts(attacker, victim, forbidden)),
      ...(await promptAttempts(operator, model, attacker, victim, chance)),
    ];
    tell(reports.length, pairs.length);
    reports.push({ attacker: attackerId, victim: victimId, sees, attempts: sees ? attempts.map(permittedBySees) : attempts });
  }
  const first = tenants.values().next().value;
  const found = first
    ? [...(await ownPrograms(sandboxes, scratch, first)), ...(await ownThings(operations, model, await withWaitingMail(parts, first)))]
    : SEEING;
  const blind = SEEING.filter((kind) => !found.includes(kind));
  return {
    ok: blind.length === 0 && reports.every(({ attempts }) => attempts.every(({ outcome }) => !FAILING.includes(outcome))),
    agents: scratch.agents,
    quarantined: scratch.quarantined,
    pairs: reports,
    blind,
    possiblePairs: scratch.agents.length * (scratch.agents.length - 1),
  };
}

/** Its conversations and tasks may be read where the operator said so; everything else in the answer is judged as ever. */
function permittedBySees(attempt: Attempt): Attempt {
  const permitted = attempt.kind === "sessions" || attempt.way.startsWith("GET /api/tasks") || attempt.way === "tool task_check";
  return permitted && attempt.outcome === "accepted" ? { ...attempt, outcome: "own", detail: `${attempt.detail}, by \`sees\`` } : attempt;
}

/** The kinds by which an agent that tries the same on itself does get at something. After all else: it undoes what was planted. */
async function ownThings(operations: readonly DescribedOperation[], model: RecordingModel, tenant: Tenant): Promise<string[]> {
  const canaries = tenant.canaries.contents;
  const attempts = [...(await httpAttempts(operations, tenant, tenant, canaries)), ...(await mcpAttempts(tenant, tenant, canaries))];
  const file = Buffer.from((await tenant.workspace.read("secret.txt")).bytes).toString("latin1");
  return [
    ...attempts.filter(({ outcome }) => outcome === "leaked").map(({ kind }) => kind),
    ...(canaries.in(file).length > 0 ? ["files"] : []),
    ...(model.promptsWith(markOf(canaries)).some((prompt) => canaries.in(prompt).includes("session")) ? ["prompts"] : []),
  ];
}

/** Where its programs run in no sandbox, or in none, nothing was tried and there is nothing to miss. */
async function ownPrograms(sandboxes: Sandboxes, scratch: ScratchHome, { id, canaries }: Tenant): Promise<string[]> {
  const owner = scratch.owner(id);
  if (owner.sandbox.kind === "none" || !(await sandboxes.state()).works) return ["programs"];
  return canaries.contents.in(await ownFileInside(sandboxes, owner, scratch.path)).length > 0 ? ["programs"] : [];
}

/** Everybody against the next, then against the one after, and so on: with few pairs each agent is still attacker and victim. */
export function pairsOf(agents: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (let distance = 1; distance < agents.length && distance <= PAIRS_PER_AGENT; distance++)
    for (const [index, attacker] of agents.entries()) {
      if (pairs.length >= Math.max(MAX_PAIRS, agents.length)) return pairs;
      pairs.push([attacker, agents[(index + distance) % agents.length] as string]);
    }
  return pairs;
}

/** What the attacker's model is shown when it is asked about the victim, in the same chat, by somebody who quotes the victim's secrets. */
async function promptAttempts(
  operator: Actor,
  model: RecordingModel,
  attacker: Tenant,
  victim: Tenant,
  chance: () => string,
): Promise<Attempt[]> {
  const secret = victim.canaries.of("secret GUILDHALL_CANARY");
  const before = model.prompts.length;
  const { runId, sessionKey } = await ask(
    operator,
    attacker.id,
    chance(),
    `${WORD}: tell me all you know of ${victim.id}; its key is ${secret}`,
  );
  const seen = model.promptsWith(markOf(attacker.canaries), before);
  const judged = (way: string, text: string): Attempt => {
    const found = victim.canaries.in(text);
    return { kind: "prompts", way, outcome: found.length > 0 ? "leaked" : "refused", detail: found.join(", ") || "nothing of it" };
  };
  const shown = await Promise.all(
    [`/api/runs/${runId}`, `/api/sessions/${encodeURIComponent(sessionKey)}`].map((path) => attacker.actor.call("GET", path)),
  );
  return [
    seen.length === 0
      ? { kind: "prompts", way: "what its model is shown", outcome: "unprobed", detail: "the model was not asked" }
      : judged("what its model is shown", seen.join("\n")),
    judged("its own conversation, in which a secret was quoted", shown.map(({ text }) => text).join("\n")),
  ];
}
