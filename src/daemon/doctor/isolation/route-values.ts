import { type Tenant, WORD } from "./plant.ts";

/** What an operation of the API takes besides its path; as its description says it. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly schema?: { readonly enum?: readonly string[] };
}

/** Values of a parameter that are after the victim's things; undefined: nobody has said yet what to ask for here. */
export function valuesFor(path: string, { name, schema }: Parameter, victim: Tenant): readonly string[] | undefined {
  const [, , room = ""] = path.split("/");
  return schema?.enum ?? BY_ROOM[room]?.[name]?.(victim) ?? ANYWHERE[name]?.(victim);
}

type Values = Readonly<Record<string, (victim: Tenant) => readonly string[]>>;

const BY_ROOM: Readonly<Record<string, Values>> = {
  runs: { id: ({ runId }) => [runId] },
  sessions: { key: ({ sessionKey }) => [sessionKey], after: ({ cursors }) => cursors.sessions, before: () => ["1000000"] },
  mail: { id: ({ mailId, waitingMailId }) => [mailId, waitingMailId], before: () => ["1000000000"] },
  proposals: { id: ({ proposalId }) => [proposalId], before: ({ proposalId }) => [proposalId] },
  approvals: { id: ({ approvalId }) => [approvalId] },
  tasks: {
    id: ({ taskId }) => [taskId, taskId.slice(0, 18)],
    below: ({ taskId }) => [taskId],
    before: () => ["zzzzzzzzzzzzzzzzzzzz"],
    q: ({ id, taskId }) => [WORD, `${WORD} ${id}`, taskId, taskId.slice(0, 8)],
  },
  workflows: { id: ({ workflowId }) => [workflowId], before: () => ["zzzzzzzzzzzzzzzzzzzz"], name: () => ["isolation"] },
  schedules: { id: ({ scheduleId }) => [scheduleId] },
  memory: { id: ({ noteId }) => [noteId], before: () => ["zzzzzzzzzzzzzzzzzzzz"] },
  tokens: { id: ({ tokenId }) => [tokenId] },
  agents: { id: ({ id }) => [id] },
  claims: { after: ({ cursors }) => cursors.claims },
  route: { before: ({ runId }) => [runId] },
};

const ANYWHERE: Values = {
  pool: ({ pool }) => [pool],
  key: ({ entryKey }) => [entryKey],
  agent: ({ id }) => [id],
  model: ({ id }) => [id],
  q: ({ id }) => [WORD, `${WORD} ${id}`],
  subject: ({ id, sessionKey, pool }) => [`session/${encodeURIComponent(sessionKey)}`, `pool/${pool}`, `agent/${id}`],
  limit: () => ["50"],
  after: () => ["0"],
  version: () => ["1"],
  full: () => ["true"],
  from: () => ["1"],
  to: () => ["1"],
  at: () => ["1"],
  prefix: () => ["f"],
  overlaps: () => ["isolation/**"],
  last: () => ["10"],
  step: () => ["1"],
  days: () => ["30"],
  tool: () => ["file_read"],
  args: () => ["{}"],
  platform: () => ["isolation"],
  account: () => ["default"],
  chat: () => ["same-chat"],
  peer: () => ["same-peer"],
  topic: () => ["same-topic"],
  guild: () => ["same-guild"],
  team: () => ["same-guild"],
  roles: () => ["any"],
};

export interface Operation {
  /** Agents may do this for themselves: then an answer is fine, with nothing of the victim's in it. */
  readonly common?: true;
  /** Bodies that are after the victim's things. */
  bodies?(victim: Tenant, attacker: Tenant): readonly unknown[];
}

const COMMON: Operation = { common: true };

/** Operations with a body, and those without an id that agents may call. Whatever is not here and names nothing must be refused. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  "GET /": COMMON,
  "GET /healthz": COMMON,
  "GET /readyz": COMMON,
  "GET /metrics": COMMON,
  "GET /api/openapi.json": COMMON,
  "GET /v1/models": COMMON,
  "POST /v1/chat/completions": { bodies: ({ id }) => [{ model: id, messages: [{ role: "user", content: "x" }] }] },
  "POST /v1/responses": {
    bodies: ({ id, runId }, attacker) => [
      { model: id, input: "x" },
      { model: attacker.id, input: "x", previous_response_id: `resp_${runId}` },
    ],
  },
  "GET /api/runs": COMMON,
  "GET /api/usage": COMMON,
  "GET /api/sessions": COMMON,
  "GET /api/sessions/search": COMMON,
  "GET /api/tasks": COMMON,
  "GET /api/tasks/search": COMMON,
  // Where the operator lets it delegate to the victim, it may.
  "POST /api/tasks": { common: true, bodies: ({ id }) => [{ agent: id, goal: "x" }] },
  "GET /api/workflows/runs": COMMON,
  "POST /api/workflows/runs": {
    common: true,
    bodies: ({ id }) => [{ workflow: { name: "isolation", steps: [{ id: "one", agent: id, goal: "x" }] } }],
  },
  "POST /api/workflows/runs/{id}/cancel": { bodies: () => [{}] },
  "POST /api/workflows/runs/{id}/pause": { bodies: () => [{}] },
  "POST /api/workflows/runs/{id}/resume": { bodies: () => [{}] },
  "POST /api/workflows/runs/{id}/approve": { bodies: () => [{ step: "one", verdict: "approve" }] },
  "POST /api/workflows/runs/{id}/rerun": { bodies: () => [{ from: "one" }] },
  "GET /api/schedules": COMMON,
  "POST /api/schedules": { bodies: ({ id }) => [{ agent: id, name: "x", cron: "@yearly", goal: "x" }] },
  "POST /api/pairings": { bodies: () => [{ code: "AAAA-AAAA" }] },
  // The protocol answers 200 to what it refuses.
  "POST /a2a/{agent}": {
    common: true,
    bodies: ({ taskId }) =>
      ["GetTask", "CancelTask", "tasks/get", "tasks/cancel"].map((method) => ({ jsonrpc: "2.0", id: 1, method, params: { id: taskId } })),
  },
  "GET /api/memory": COMMON,
  "GET /api/claims": COMMON,
  "GET /api/mail": COMMON,
  "GET /api/pools": COMMON,
  "GET /api/proposals": COMMON,
  "GET /api/guests": COMMON,
  "GET /api/agents": COMMON,
  "POST /api/messages": {
    bodies: ({ id }) => [
      { id: "attempt", platform: "isolation", chat: "same-chat", peer: "same-peer", chat_type: "dm", agent: id, text: "x" },
    ],
  },
  "POST /api/approvals/{id}": { bodies: () => [{ verdict: "approve" }] },
  "POST /api/tokens": { bodies: ({ id }) => [{ scope: `agent:${id}` }, { scope: "operator" }] },
  "POST /api/claims": { common: true, bodies: ({ claim }) => [{ resource: claim.resource, ttl_ms: 1_000 }] },
  "POST /api/claims/renew": { bodies: ({ claim }) => [claim] },
  "POST /api/claims/release": { bodies: ({ claim }) => [claim] },
  "POST /api/mail": { common: true, bodies: ({ id }, attacker) => [{ to: id, type: "x", content: "x", readers: [attacker.id] }] },
  "POST /api/mail/receive": { common: true, bodies: () => [{ max: 100, visibility_ms: 1 }] },
  "POST /api/mail/{id}/ack": { bodies: ({ mailFence }) => [{ fence: mailFence }] },
  "POST /api/mail/{id}/nack": { bodies: ({ mailFence }) => [{ fence: mailFence, delay_ms: 0 }] },
  "POST /api/pools": { bodies: ({ pool }, { id }) => [{ name: pool, readers: [id], writers: [id] }] },
  "POST /api/pools/{pool}/batch": {
    bodies: ({ entryKey, mailId, mailFence }) => [
      { writes: [{ key: entryKey, value: "x" }] },
      { writes: [{ key: "new", value: "x" }], ack: [{ id: mailId, fence: mailFence }] },
    ],
  },
  "PUT /api/pools/{pool}/entries/{key}": { bodies: () => [{ value: "x" }] },
  "POST /api/pools/{pool}/entries/{key}/retract": { bodies: () => [{ version: 1, reason: "x" }] },
  "POST /api/pools/{pool}/entries/{key}/endorse": { bodies: () => [{ version: 1, reason: "x" }] },
  "POST /api/proposals": {
    common: true,
    bodies: ({ pool, entryKey: key }, { id }) => {
      const draft = { subject: "x", electorate: [id], rule: "all", deadline_ms: 60_000 };
      return [draft, { ...draft, pins: [{ pool, key, version: 1 }] }, { ...draft, writes: [{ pool, key, value: "x" }] }];
    },
  },
  "POST /api/proposals/{id}/votes": { bodies: ({ proposalHash }) => [{ vote: "veto", hash: proposalHash }] },
  "POST /api/guests": { bodies: () => [{ client: "x" }] },
  "POST /api/guard": { bodies: () => [{ files: [{ repository: "x~00000000", path: "x" }] }] },
};
