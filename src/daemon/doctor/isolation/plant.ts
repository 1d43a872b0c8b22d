import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Place } from "../../../kernel/place-folder.ts";
import type { Approvals } from "../../../records/access/approvals.ts";
import type { Memory } from "../../../records/memory/memory.ts";
import type { Standpoint } from "../../../records/memory/standpoint.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import { type WorkspaceOwner, Workspaces } from "../../../records/workspaces/workspaces.ts";
import type { Store } from "../../../store/store.ts";
import { Actor } from "./actor.ts";
import type { Canaries } from "./canaries.ts";
import { openMcp } from "./mcp-connection.ts";

/** A word that is in everything that is planted, to be searched for. */
export const WORD = "rendezvous";

/** One agent, what is its own, and the names by which others could ask for it. */
export interface Tenant {
  readonly id: string;
  readonly actor: Actor;
  readonly canaries: Canaries;
  readonly workspace: Workspace;
  /** Where its workspace lies. */
  readonly folder: string;
  readonly runId: string;
  readonly sessionKey: string;
  readonly pool: string;
  readonly entryKey: string;
  /** One that everybody may read, and only the agent write. */
  readonly openPool: string;
  readonly mailId: string;
  readonly mailFence: number;
  readonly waitingMailId: string;
  readonly proposalId: string;
  readonly proposalHash: string;
  readonly approvalId: string;
  readonly noteId: string;
  readonly taskId: string;
  readonly workflowId: string;
  readonly scheduleId: string;
  readonly tokenId: string;
  readonly claim: { readonly resource: string; readonly fence: number };
  readonly mcpSession: string;
  /** Places in the operator's lists of everything, from which others could try to go on. */
  readonly cursors: { readonly sessions: readonly string[]; readonly claims: readonly string[] };
  /** Requests it has made with an idempotency key, as others could repeat them. */
  readonly keyed: readonly { readonly path: string; readonly body: unknown; readonly key: string }[];
}

export interface PlantParts {
  readonly url: string;
  readonly home: string;
  readonly operator: Actor;
  readonly approvals: Approvals;
  readonly store: Store;
  readonly memory: Memory;
  readonly workspaces: Workspaces;
  readonly chance: () => string;
}

/** Where all agents are spoken to alike: only the agent tells their sessions apart. */
export const PLACE: Place = { platform: "isolation", account: "default", chat: "same-chat", topic: null };
/** It ends sooner; what came of it is to be searched through too. */
const TASK_MS = 10_000;
const SAME_PLACE = { platform: "isolation", chat: "same-chat", peer: "same-peer", chat_type: "dm" };

export async function ask(operator: Actor, agent: string, id: string, text: string): Promise<{ runId: string; sessionKey: string }> {
  const sent = await operator.must<{ runId: string; sessionKey: string }>("POST", "/api/messages", { ...SAME_PLACE, id, agent, text });
  for (;;) {
    const { status } = await operator.must<{ status: string }>("GET", `/api/runs/${sent.runId}`);
    if (!["queued", "running", "waiting"].includes(status)) return sent;
    await sleep(20);
  }
}

/** Gives an agent something of every kind that the product has. */
export async function plant(parts: PlantParts, owner: WorkspaceOwner, canaries: Canaries): Promise<Tenant> {
  const { url, home, operator, approvals, chance, workspaces } = parts;
  const { id } = owner;
  const workspace = workspaces.workspace(owner, PLACE, { configFile: join(home, "guildhall.yaml") });
  const created = await operator.must<{ id: string; token: string }>("POST", "/api/tokens", { scope: `agent:${id}` });
  const actor = new Actor(id, url, created.token);

  await workspace.write("secret.txt", `${WORD} ${canaries.of("workspace")}`);
  const own = join(home, "agents", id);
  mkdirSync(join(own, "memory"), { recursive: true, mode: 0o700 });
  writeFileSync(join(own, "memory", "MEMORY.md"), canaries.of("memory"), { mode: 0o600 });
  writeFileSync(join(own, "SOUL.md"), canaries.of("soul"), { mode: 0o600 });

  const { runId, sessionKey } = await ask(operator, id, chance(), `${WORD} ${canaries.of("session")}`);

  const pool = `private-${chance()}`;
  const entryKey = "findings";
  await operator.must("POST", "/api/pools", { name: pool, readers: [id], writers: [id] });
  const openPool = `open-${chance()}`;
  await operator.must("POST", "/api/pools", { name: openPool, readers: ["*"], writers: [id] });
  const batch = { path: `/api/pools/${pool}/batch`, body: { writes: [{ key: entryKey, value: canaries.of("pool") }] }, key: chance() };
  await actor.must("POST", batch.path, batch.body, { "idempotency-key": batch.key });

  const receive = { path: "/api/mail/receive", body: { max: 1, visibility_ms: 3_600_000 }, key: chance() };
  const first = await operator.must<{ id: string }>("POST", "/api/mail", { to: id, type: WORD, content: canaries.of("mail") });
  const { mail } = await actor.must<{ mail: { fence: number }[] }>("POST", receive.path, receive.body, { "idempotency-key": receive.key });

  const subject = `${WORD} ${canaries.of("proposal")}`;
  const proposal = await actor.must<{ id: string; hash: string }>("POST", "/api/proposals", {
    subject,
    electorate: [id],
    rule: "all",
    deadline_ms: 3_600_000,
  });
  const approvalId = await approvals.ask({
    run: runId,
    agent: id,
    tool: "terminal",
    args: { command: canaries.of("approval") },
    askedOf: "owners",
    expiresMs: 3_600_000,
  });
  // Names of claims are common ground; what is its own is the right to renew and release.
  const claim = await actor.must<{ resource: string; fence: number }>("POST", "/api/claims", {
    resource: `isolation/${id}`,
    ttl_ms: 3_600_000,
  });
  const noteId = await plantNote(parts, id, canaries);
  const task = await actor.must<{ id: string }>("POST", "/api/tasks", {
    agent: id,
    goal: `${WORD} ${canaries.of("task")}`,
    wait_ms: TASK_MS,
  });
  const workflowId = await plantWorkflow(parts, id, canaries);
  const schedule = await actor.must<{ id: string }>("POST", "/api/schedules", {
    agent: id,
    name: "isolation",
    cron: "@yearly",
    goal: `${WORD} ${canaries.of("schedule")}`,
  });
  const names = {
    run: runId,
    session: sessionKey,
    pool,
    mail: first.id,
    proposal: proposal.id,
    approval: approvalId,
    note: noteId,
    task: task.id,
    workflow: workflowId,
    schedule: schedule.id,
    token: created.id,
  };
  for (const [kind, name] of Object.entries(names)) canaries.name(`name of its ${kind}`, name);
  return {
    id,
    actor,
    canaries,
    workspace,
    folder: join(home, ...Workspaces.folderOf(owner, PLACE)),
    runId,
    sessionKey,
    pool,
    entryKey,
    openPool,
    mailId: first.id,
    mailFence: mail[0]?.fence ?? 1,
    waitingMailId: "",
    proposalId: proposal.id,
    proposalHash: proposal.hash,
    approvalId,
    noteId,
    taskId: task.id,
    workflowId,
    scheduleId: schedule.id,
    tokenId: created.id,
    claim: { resource: claim.resource, fence: claim.fence },
    mcpSession: await openMcp(actor),
    cursors: { sessions: [], claims: [] },
    keyed: [batch, receive],
  };
}

/** An agent that may not delegate starts none itself, and one of its own must not be seen by others either: this one is made its own. */
async function plantWorkflow({ operator, store }: PlantParts, agent: string, canaries: Canaries): Promise<string> {
  const { id } = await operator.must<{ id: string }>("POST", "/api/workflows/runs", {
    workflow: { name: "isolation", steps: [{ id: "one", agent, goal: `${WORD} ${canaries.of("step")}` }] },
    input: { said: canaries.of("workflow") },
  });
  await store.transact("a workflow of its own", (tx) => tx.run`update workflow_runs set opened_by = ${agent} where id = ${id}`);
  return id;
}

/** Saved as a turn would save it, in the very place where all agents are spoken to. */
async function plantNote({ store, memory }: PlantParts, agent: string, canaries: Canaries): Promise<string> {
  const person = `${PLACE.platform}:${SAME_PLACE.peer}`;
  const from: Standpoint = { agent, scope: "agent", place: PLACE, person, persons: [person], heard: "private" };
  const note = { text: `${WORD} ${canaries.of("note")}`, pinned: true, labels: [], run: null };
  return (await store.transact("plant note", (tx) => memory.saveIn(tx, from, note), "locked")).id;
}

/** With mail that it could receive at once: it may have received what it had, and within a conversation one waits for the other. */
export async function withWaitingMail({ operator, chance }: PlantParts, tenant: Tenant): Promise<Tenant> {
  const mail = { to: tenant.id, type: WORD, content: tenant.canaries.of("waiting mail"), conversation: chance() };
  const { id } = await operator.must<{ id: string }>("POST", "/api/mail", mail);
  tenant.canaries.name("name of its waiting mail", id);
  return { ...tenant, waitingMailId: id };
}

/** Once everybody has something: the operator's lists in parts of one, and where they go on. */
export async function cursorsOf(operator: Actor): Promise<Tenant["cursors"]> {
  const next = async (room: string): Promise<string[]> => {
    const { next: cursor } = await operator.must<{ next: string | null }>("GET", `/api/${room}?limit=1`);
    return cursor === null ? [] : [cursor];
  };
  return { sessions: await next("sessions"), claims: await next("claims") };
}
