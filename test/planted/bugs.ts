import { A2A_BUGS } from "./a2a-bugs.ts";
import { ACCESS_BUGS } from "./access-bugs.ts";
import { ACCOUNT_BUGS } from "./account-bugs.ts";
import { AGREEMENT_BUGS } from "./agreement-bugs.ts";
import { API_BUGS } from "./api-bugs.ts";
import { ATTACHMENT_BUGS } from "./attachment-bugs.ts";
import { BUDGET_BUGS } from "./budget-bugs.ts";
import { CONFIG_NODE_BUGS } from "./config-node-bugs.ts";
import { CONTEXT_BUGS } from "./context-bugs.ts";
import { COORDINATION_BUGS } from "./coordination-bugs.ts";
import { DELEGATION_BUGS } from "./delegation-bugs.ts";
import { DELIVERY_BUGS } from "./delivery-bugs.ts";
import { DISCORD_BUGS } from "./discord-bugs.ts";
import { DOCTOR_BUGS } from "./doctor-bugs.ts";
import { FORMAT_BUGS } from "./format-bugs.ts";
import { IDLE_BUGS } from "./idle-bugs.ts";
import { MAIL_TURN_BUGS } from "./mail-turn-bugs.ts";
import { MCP_BUGS } from "./mcp-bugs.ts";
import { MEMORY_BUGS } from "./memory-bugs.ts";
import { MODEL_BUGS } from "./model-bugs.ts";
import { NODE_BUGS } from "./node-bugs.ts";
import { OPENAI_BUGS } from "./openai-bugs.ts";
import { PAIRING_BUGS } from "./pairing-bugs.ts";
import { PLACEMENT_BUGS } from "./placement-bugs.ts";
import { PLANNING_BUGS } from "./planning-bugs.ts";
import { POLICY_BUGS } from "./policy-bugs.ts";
import { POOL_BUGS } from "./pool-bugs.ts";
import { RELAY_BUGS } from "./relay-bugs.ts";
import { ROUTING_BUGS } from "./routing-bugs.ts";
import { SANDBOX_BUGS } from "./sandbox-bugs.ts";
import { SCHEDULE_BUGS } from "./schedule-bugs.ts";
import { SESSION_BUGS } from "./session-bugs.ts";
import { SETTINGS_BUGS } from "./settings-bugs.ts";
import { SILENCE_BUGS } from "./silence-bugs.ts";
import { SLACK_BUGS } from "./slack-bugs.ts";
import { TASK_BUGS } from "./task-bugs.ts";
import { TELEGRAM_BUGS } from "./telegram-bugs.ts";
import { TENANT_BUGS } from "./tenant-bugs.ts";
import { TURN_BUGS } from "./turn-bugs.ts";
import { UPGRADE_BUGS } from "./upgrade-bugs.ts";
import { WEBHOOK_BUGS } from "./webhook-bugs.ts";
import { WORKFLOW_API_BUGS } from "./workflow-api-bugs.ts";
import { WORKFLOW_BUGS } from "./workflow-bugs.ts";
import { WORKSPACE_BUGS } from "./workspace-bugs.ts";

/** One bug as somebody could have written it, and the unmodified tests that must notice. */
export interface PlantedBug {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Test files to run, and optionally the part of the names that matters. */
  readonly tests: readonly string[];
  readonly filter?: string;
}

const LEASES = "src/store/leases.ts";
const SETTLING = "src/store/settle-work.ts";
const IDEMPOTENCY = "src/store/idempotency.ts";
const GROUP_COMMIT = "src/store/sqlite/group-commit.ts";
const POSTGRES = "src/store/postgres/postgres-engine.ts";

export const BUGS: readonly PlantedBug[] = [
  {
    name: "the guard of a lease forgets the fence",
    file: LEASES,
    from: "where name = ${scopeKey(name)} and fence = ${fence} and expires_at > now_ms() ${this.#engine.dialect.forUpdate}`",
    to: "where name = ${scopeKey(name)} and ${fence} > 0 and expires_at > now_ms() ${this.#engine.dialect.forUpdate}`",
    tests: ["test/contract/leases.test.ts"],
  },
  {
    name: "a lost lease can be renewed",
    file: LEASES,
    from: "and fence = ${fence} and expires_at > now_ms() returning expires_at",
    to: "and fence = ${fence} returning expires_at",
    tests: ["test/contract/leases.test.ts"],
  },
  {
    name: "a lease is still held at the millisecond of its expiry",
    file: LEASES,
    from: "and fence = ${fence} and expires_at > now_ms() returning expires_at",
    to: "and fence = ${fence} and expires_at >= now_ms() returning expires_at",
    tests: ["src/store/leases.test.ts"],
  },
  {
    name: "a reader in the middle of a batch sees what is not committed",
    file: GROUP_COMMIT,
    from: "return this.#connection?.db.isTransaction === false ? this.#connection : undefined;",
    to: "return this.#connection;",
    tests: ["test/contract/transactions.test.ts"],
  },
  {
    name: "work is settled whoever claims to own it",
    file: SETTLING,
    from: "delete from work where state = 'running' and ${claimedBy(claims)} returning id, lane",
    to: "delete from work where state = 'running' and id in ${list(claims.map((claim) => claim.id))} returning id, lane",
    tests: ["test/contract/work-queue.test.ts"],
  },
  {
    name: "an expired claim on work can be renewed",
    file: "src/store/claim-work.ts",
    from: "state = 'running' and lease_until > now_ms() and ${claimedBy(claims)}",
    to: "state = 'running' and ${claimedBy(claims)}",
    tests: ["test/contract/work-queue.test.ts"],
  },
  {
    name: "parking forgets what has already happened",
    file: SETTLING,
    from: "set state = case when woken = 1 then 'ready' else 'parked' end",
    to: "set state = 'parked'",
    tests: ["test/contract/work-queue.test.ts"],
    filter: "parking",
  },
  {
    name: "a dead letter leaves its lane, and the lane does not hear of it",
    file: SETTLING,
    from: "set state = 'dead', owner = null,",
    to: "set state = 'dead', lane = null, position = null, owner = null,",
    tests: ["test/contract/work-queue.test.ts"],
    filter: "dead",
  },
  {
    name: "everybody in a lane believes to be first",
    file: "src/store/lanes.ts",
    from: "first: row.head === row.tail",
    to: "first: row.head <= row.tail",
    tests: ["test/contract/work-queue.test.ts"],
    filter: "lanes",
  },
  {
    name: "success is told before the commit",
    file: "src/store/sqlite/run-bodies.ts",
    from: "if (tx.open) this.#end(tx,",
    to: "if (tx.open) this.#operation.resolve(value);\n    if (tx.open) this.#end(tx,",
    tests: ["test/chaos/store.test.ts"],
    filter: "sqlite",
  },
  {
    name: "a failed operation of a batch is not taken back",
    file: "src/store/sqlite/run-bodies.ts",
    from: "this.#end(tx, outcome, tx.wrote);",
    to: "this.#end(tx, outcome, tx.wrote && error === undefined);",
    tests: ["test/contract/transactions.test.ts"],
    filter: "SQLite",
  },
  {
    name: "in a batch that is done again the savepoint is lost",
    file: GROUP_COMMIT,
    from: 'if (spoiled) connection.control("ROLLBACK TO operation");',
    to: 'if (spoiled) connection.control("SAVEPOINT operation");',
    tests: ["src/store/sqlite/group-commit.test.ts"],
  },
  {
    name: "readers of the ledger do not wait for late commits",
    file: "src/store/ledger.ts",
    from: "select least(last.drawn, marks.lowest) as horizon",
    to: "select greatest(last.drawn, marks.lowest) as horizon",
    tests: ["test/contract/ledger.test.ts"],
    filter: "PostgreSQL",
  },
  {
    name: "followers of the ledger miss what another process has written",
    file: "src/store/ledger-tail.ts",
    from: " || event.seq !== this.#newest + 1 ||",
    to: " ||",
    tests: ["test/contract/ledger.test.ts"],
    filter: "SQLite",
  },
  {
    name: "each follower of the ledger reads for itself when much comes at once",
    file: "src/store/ledger-tail.ts",
    from: "    this.#recent.push(event);\n",
    to: "    if (this.#recent.push(event) > REMEMBERED) this.#from = (this.#recent.shift() as LedgerEvent).seq;\n",
    tests: ["test/contract/ledger.test.ts"],
    filter: "SQLite",
  },
  {
    name: "followers of the ledger are told what was taken back",
    file: "src/store/sqlite/run-bodies.ts",
    from: "topics: [], acts: [] };",
    to: "topics: [], acts: tx.acts };",
    tests: ["test/contract/ledger.test.ts"],
    filter: "SQLite",
  },
  {
    name: "ROLLBACK in answer to COMMIT passes for success",
    file: POSTGRES,
    from: 'if (answer.command === "COMMIT") return;',
    to: "if (answer.command) return;",
    tests: ["test/contract/transactions.test.ts"],
    filter: "PostgreSQL",
  },
  {
    name: "a commit without an answer is simply tried again",
    file: POSTGRES,
    from: "if (await this.#wasCommitted(tx.label, xid, this.#lives.get(client))) return;",
    to: "if (xid === tx.label && (await this.#wasCommitted(tx.label, xid, this.#lives.get(client)))) return;",
    tests: ["test/contract/postgres-outages.test.ts"],
  },
  {
    name: "after a crash, a number's new transaction answers for the old one",
    file: POSTGRES,
    from: "if (answer && answer.rows[0]?.life !== life) break;",
    to: "if (answer && life === label) break;",
    tests: ["test/contract/postgres-outages.test.ts"],
    filter: "swallowed",
  },
  {
    name: "a branch of a refused body goes on writing",
    file: POSTGRES,
    from: "throw tx.failure ?? new BodyRefused(error);\n    } finally {\n      tx.end();",
    to: "throw tx.failure ?? new BodyRefused(error);\n    } finally {\n      setTimeout(() => tx.end(), 1_000);",
    tests: ["test/contract/transactions.test.ts"],
    filter: "PostgreSQL",
  },
  {
    name: "a woken item is claimed before the news is there",
    file: SETTLING,
    from: "where id = ${id} and state in ('parked', 'running', 'ready') returning",
    to: "where id = ${id} and state in ('parked', 'running') returning",
    tests: ["test/contract/work-queue.test.ts"],
    filter: "PostgreSQL",
  },
  {
    name: "ids of work come again after a restore",
    file: "src/store/restore.ts",
    from: "select setval(pg_get_serial_sequence('work', 'id'), now_ms() * 1000)",
    to: "select setval(pg_get_serial_sequence('work', 'id'), (select coalesce(max(id), 0) + 1 from work), false)",
    tests: ["test/contract/backup.test.ts"],
    filter: "backup of SQLite",
  },
  {
    name: "when the commit fails, a refusal of its batch is told all the same",
    file: GROUP_COMMIT,
    from: "for (const { reject } of taken.length > 0 ? taken : this.#waiting.splice(0)) reject(failure);",
    to: "for (const { reject, outcome } of taken.length > 0 ? taken : this.#waiting.splice(0)) reject(outcome?.failed ? outcome.value : failure);",
    tests: ["src/store/sqlite/group-commit.test.ts"],
  },
  {
    name: "transactions on PostgreSQL are not isolated",
    file: POSTGRES,
    from: 'isolation === "locked" ? "READ COMMITTED" : "SERIALIZABLE"',
    to: 'isolation === "locked" ? "READ COMMITTED" : "REPEATABLE READ"',
    tests: ["test/contract/transactions.test.ts"],
    filter: "PostgreSQL",
  },
  {
    name: "an overtaken runner may still record its answer",
    file: IDEMPOTENCY,
    from: "and key = ${request.key} and fence = ${fence} and state = 'in-progress'`;\n    if (changed === 0)",
    to: "and key = ${request.key} and ${fence} > 0 and state = 'in-progress'`;\n    if (changed === 0)",
    tests: ["test/contract/idempotency.test.ts"],
  },
  {
    name: "a key answers for another request",
    file: IDEMPOTENCY,
    from: "known.expired === 0 && known.request !== request.request",
    to: "known.expired === 1 && known.request !== request.request",
    tests: ["test/contract/idempotency.test.ts"],
  },
  {
    name: "a scope is a mere prefix of text",
    file: "src/kernel/scope.ts",
    from: 'prefix === "" ? "\\u{10FFFF}" : `${prefix.slice(0, -1)}0`',
    to: 'prefix === "" ? "\\u{10FFFF}" : `${prefix.slice(0, -1)}\\u{10FFFF}`',
    tests: ["test/contract/search.test.ts", "test/contract/ledger.test.ts"],
  },
  {
    name: "fences start again after a restore",
    file: "src/store/restore.ts",
    from: "update counters set value = max(${fence}, now_ms() * 1000)",
    to: "update counters set value = ${fence}",
    tests: ["test/contract/backup.test.ts"],
    filter: "backup of SQLite",
  },
  {
    name: "the sweep takes blobs that somebody refers to",
    file: "src/store/blobs.ts",
    from: "and not exists (select 1 from blob_references where blob_references.hash = blobs.hash)",
    to: "",
    tests: ["test/contract/blobs.test.ts"],
  },
  {
    name: "the seal does not cover what the events say",
    file: "src/store/sealer.ts",
    from: "${inOrder(event)}`);",
    to: "${canonicalJson(event.seq)}`);",
    tests: ["test/contract/ledger.test.ts"],
    filter: "sealing",
  },
  {
    name: "seals of older programs do not hold",
    file: "src/store/sealer.ts",
    from: '"data":${canonicalJson(data)}',
    to: '"data":${JSON.stringify(data)}',
    tests: ["test/contract/ledger.test.ts"],
    filter: "sealing",
  },
  ...ACCESS_BUGS,
  ...ACCOUNT_BUGS,
  ...POOL_BUGS,
  ...COORDINATION_BUGS,
  ...AGREEMENT_BUGS,
  ...API_BUGS,
  ...ATTACHMENT_BUGS,
  ...SCHEDULE_BUGS,
  ...SESSION_BUGS,
  ...SLACK_BUGS,
  ...TURN_BUGS,
  ...CONFIG_NODE_BUGS,
  ...CONTEXT_BUGS,
  ...BUDGET_BUGS,
  ...UPGRADE_BUGS,
  ...WEBHOOK_BUGS,
  ...WORKFLOW_API_BUGS,
  ...WORKFLOW_BUGS,
  ...WORKSPACE_BUGS,
  ...SANDBOX_BUGS,
  ...DISCORD_BUGS,
  ...DELIVERY_BUGS,
  ...DOCTOR_BUGS,
  ...FORMAT_BUGS,
  ...DELEGATION_BUGS,
  ...TASK_BUGS,
  ...TENANT_BUGS,
  ...SETTINGS_BUGS,
  ...PAIRING_BUGS,
  ...PLACEMENT_BUGS,
  ...PLANNING_BUGS,
  ...POLICY_BUGS,
  ...RELAY_BUGS,
  ...ROUTING_BUGS,
  ...TELEGRAM_BUGS,
  ...IDLE_BUGS,
  ...MAIL_TURN_BUGS,
  ...MEMORY_BUGS,
  ...MCP_BUGS,
  ...NODE_BUGS,
  ...SILENCE_BUGS,
  ...OPENAI_BUGS,
  ...MODEL_BUGS,
  ...A2A_BUGS,
];
