import type { z } from "zod";
import type { Approval, approvalQuery, Verdict } from "../../contract/approvals.ts";
import { canonicalJson, sha256 } from "../../kernel/canonical-json.ts";
import { Failure } from "../../kernel/failure.ts";
import type { NewId } from "../../kernel/ids.ts";
import { shown } from "../../kernel/shown.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { code, list, type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";

export interface Question {
  readonly run: string | null;
  readonly agent: string;
  readonly tool: string;
  readonly args: unknown;
  /** `<platform>:<sender id>`, or `operator`: before whom the question was put. */
  readonly askedOf: string;
  readonly expiresMs: number;
}

/** Who answers. `mayAnswer`: an owner of this house or its operator; who that is, is the config's to say. */
export interface Answerer {
  readonly name: string;
  readonly mayAnswer: boolean;
}

/** `used`: exactly this call may be made, now. Everything else: not. */
export type Consumed = "used" | "not approved" | "denied" | "already used" | "expired" | "void";

interface ApprovalRow {
  readonly id: string;
  readonly run_id: string | null;
  readonly agent: string;
  readonly tool: string;
  readonly args: string;
  readonly hash: string;
  readonly asked_of: string;
  readonly state: Approval["state"];
  readonly asked_at: number;
  readonly expires_at: number;
  readonly answered_by: string | null;
  readonly answered_at: number | null;
  readonly used_at: number | null;
}

const GATEWAY = "guildhall";
const EXPIRED_AT_ONCE = 100;
/** Asked and approved ones end by themselves; nobody need have written it down yet. */
const COLUMNS = code(`id, run_id, agent, tool, args, hash, asked_of, asked_at, expires_at, answered_by, answered_at, used_at,
  case when state in ('asked', 'approved') and used_at is null and expires_at <= now_ms() then 'expired' else state end as state`);

/** As the index of those that have not ended says it: what was used or answered with no long ago is never looked through. */
const OPEN = code("state in ('asked', 'approved') and used_at is null");

/** What an approval is bound to: this agent's call of this tool with these arguments. */
export function callHash({ agent, tool, args }: Pick<Question, "agent" | "tool" | "args">): string {
  return sha256(canonicalJson({ agent, tool, args: args ?? null }));
}

/** As somebody may judge it: with everything hidden made visible, on one line. */
export function shownCall(tool: string, args: unknown): string {
  return `${shown(tool)} ${shown(canonicalJson(args ?? null))}`;
}

/** The run has ended: nobody need be asked any more, and a word that was not used is good for nothing. */
export async function voidApprovalsOf(store: Store, tx: Tx, run: string, because: string): Promise<void> {
  const rows = await tx.all<{ id: string }>`update approvals set state = 'void'
    where run_id = ${run} and ${OPEN} and expires_at > now_ms() returning id`;
  for (const { id } of rows)
    await store.ledger.append(tx, { type: "approval.voided", actor: GATEWAY, subject: ["approval", id], data: { run, because } });
}

/** For the pulse: whether one has run out unanswered or unused. */
export const APPROVALS_DUE = sql`(select min(expires_at) from approvals where ${OPEN}) <= now_ms()`;

/**
 * Calls that wait for a person's word.
 *
 *   asked → approved (good for one call, until it expires) | denied | expired | void (the call is not the one that was asked about, or
 *           its run has ended)
 *   approved → used, expired or void
 */
export class Approvals {
  readonly #store: Store;
  readonly #newId: NewId;

  constructor(store: Store, newId: NewId) {
    this.#store = store;
    this.#newId = newId;
  }

  ask(question: Question): Promise<string> {
    return this.#store.transact("ask for approval", (tx) => this.askIn(tx, question), "locked");
  }

  async askIn(tx: Tx, { run, agent, tool, args, askedOf, expiresMs }: Question): Promise<string> {
    const id = this.#newId();
    const hash = callHash({ agent, tool, args });
    await tx.run`insert into approvals (id, run_id, agent, tool, args, hash, asked_of, state, asked_at, expires_at)
      values (${id}, ${run}, ${agent}, ${tool}, ${canonicalJson(args ?? null)}, ${hash}, ${askedOf}, 'asked', now_ms(),
        now_ms() + cast(${Math.round(expiresMs)} as bigint))`;
    await this.#store.ledger.append(tx, {
      type: "approval.asked",
      actor: agent,
      subject: ["approval", id],
      data: { run, tool, hash, askedOf },
    });
    return id;
  }

  /** The newest first. */
  async list({ state, limit }: z.output<typeof approvalQuery>): Promise<Approval[]> {
    const wanted = state === undefined ? code("") : sql`where state = ${state}`;
    const open = state === "asked" ? sql`where ${OPEN} and expires_at > now_ms()` : code("");
    // Ids rise with time. In the order of its ids SQLite would look through the whole table for the few that are open.
    const order = state === "asked" ? code("asked_at desc, id desc") : code("id desc");
    const rows = await this.#store.read.all<ApprovalRow>`select * from (select ${COLUMNS} from approvals ${open}) as each_one ${wanted}
      order by ${order} limit ${limit}`;
    return rows.map(approvalOf);
  }

  /** Those of these ids that there are, the oldest first. */
  async these(ids: readonly string[]): Promise<Approval[]> {
    if (ids.length === 0) return [];
    const rows = await this.#store.read.all<ApprovalRow>`select ${COLUMNS} from approvals where id in ${list(ids)} order by id`;
    return rows.map(approvalOf);
  }

  /** The run that asked; null: none did. */
  async runOf(reads: Reads, idPrefix: string): Promise<string | null> {
    return (await this.#find(reads, idPrefix, code(""))).run_id;
  }

  /** How long until the first of these expires; null: there are none. */
  async leftMs(reads: Reads, ids: readonly string[]): Promise<number | null> {
    if (ids.length === 0) return null;
    const row = await reads.get<{
      left: number | null;
    }>`select min(expires_at) - now_ms() as "left" from approvals where id in ${list(ids)}`;
    return row?.left ?? null;
  }

  /** Once: the same word again changes nothing, another one is refused. */
  async answerIn(tx: Tx, by: Answerer, idPrefix: string, verdict: Verdict): Promise<Approval> {
    if (!by.mayAnswer)
      throw new Failure("request.forbidden", `"${by.name}" may not answer this`, {
        hint: "Only the operator and those listed under `owners:` in the config may.",
      });
    const row = await this.#find(tx, idPrefix, this.#store.dialect.forUpdate);
    const state = verdict === "approve" ? "approved" : "denied";
    if (row.state === state) return approvalOf(row);
    if (row.state !== "asked")
      throw new Failure("approval.closed", `approval ${row.id} is ${row.state} already`, { details: { state: row.state } });
    const { id } = row;
    await tx.run`update approvals set state = ${state}, answered_by = ${by.name}, answered_at = now_ms() where id = ${id}`;
    await this.#tell(tx, "approval.answered", by.name, id, { verdict: state });
    return approvalOf(await this.#find(tx, id, code("")));
  }

  /** Spends an approval on the call with this hash. Another call than the one that was asked about makes it void, for ever. */
  async consume(tx: Tx, id: string, hash: string): Promise<Consumed> {
    const row = await tx.get<ApprovalRow>`select ${COLUMNS} from approvals where id = ${id} ${this.#store.dialect.forUpdate}`;
    if (!row) return "not approved";
    if (row.used_at !== null) return "already used";
    if (row.state === "expired" || row.state === "void" || row.state === "denied") return row.state;
    if (row.hash !== hash) {
      await tx.run`update approvals set state = 'void' where id = ${id}`;
      await this.#tell(tx, "approval.voided", GATEWAY, id, { hash });
      return "void";
    }
    if (row.state !== "approved") return "not approved";
    await tx.run`update approvals set used_at = now_ms() where id = ${id}`;
    await this.#tell(tx, "approval.used", row.agent, id, { run: row.run_id });
    return "used";
  }

  /** Writes down which have ended unanswered or unused. Any node may call it, often. */
  async sweep(): Promise<number> {
    const due = await this.#store.read.all<{ id: string }>`select id from approvals
      where ${OPEN} and expires_at <= now_ms() order by expires_at limit ${EXPIRED_AT_ONCE}`;
    for (const { id } of due)
      await this.#store.transact(
        "expire approval",
        async (tx) => {
          const mine = await tx.run`update approvals set state = 'expired'
            where id = ${id} and ${OPEN} and expires_at <= now_ms()`;
          if (mine > 0) await this.#tell(tx, "approval.expired", GATEWAY, id, null);
        },
        "locked",
      );
    return due.length;
  }

  #tell(
    tx: Tx,
    type: "approval.answered" | "approval.voided" | "approval.used" | "approval.expired",
    actor: string,
    id: string,
    data: unknown,
  ) {
    return this.#store.ledger.append(tx, { type, actor, subject: ["approval", id], data });
  }

  async #find(reads: Reads, prefix: string, locking: SqlFragment): Promise<ApprovalRow> {
    const rows = /^[0-9a-z]{1,20}$/.test(prefix)
      ? await reads.all<ApprovalRow>`select ${COLUMNS} from approvals where id >= ${prefix} and id < ${`${prefix}~`} order by id limit 2 ${locking}`
      : [];
    const [row, second] = rows;
    if (!row) throw new Failure("request.not_found", `there is no approval "${prefix.slice(0, 40)}"`);
    if (second) throw new Failure("request.malformed", `several approvals begin with "${prefix}"`, { hint: "Give more of the id." });
    return row;
  }
}

function approvalOf(row: ApprovalRow): Approval {
  return {
    id: row.id,
    run: row.run_id,
    agent: row.agent,
    tool: row.tool,
    args: JSON.parse(row.args),
    shown: `${shown(row.tool)} ${shown(row.args)}`,
    hash: row.hash,
    askedOf: row.asked_of,
    state: row.state,
    askedAt: row.asked_at,
    expiresAt: row.expires_at,
    answeredBy: row.answered_by,
    answeredAt: row.answered_at,
    usedAt: row.used_at,
  };
}
