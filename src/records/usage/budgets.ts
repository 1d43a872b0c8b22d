import { Failure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import { sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { costOf, type Estimate } from "./estimate.ts";
import { type Amount, type Budget, inWords, type Limit, limitsOf } from "./limits.ts";
import { type CallPlace, type CallUsage, recordUsageIn, TODAY } from "./usage.ts";

export interface CallToReserve extends CallPlace {
  readonly estimate: Estimate;
  /** Of whoever calls, and of whoever the message was for that started it all. */
  budgetOf(agent: string): Budget;
  /** Where a limit of an agent is written, for whoever wants to change it. */
  written(agent: string, key: keyof Budget): string;
}

/** `maxOutputTokens`: how long the answer may be, where it must be shorter than it would otherwise; null: as it was asked for. */
export type Reserved = { readonly maxOutputTokens: number | null } | { readonly refused: Failure };

interface Spent extends Amount {
  /** By calls that run now. */
  readonly held_tokens: number;
  readonly held_cost: number;
}

/** An answer shorter than this is not worth its call. */
const LEAST_OUTPUT_TOKENS = 256;
/** A row that nobody has held for so long is nobody's. */
const LOCK_MS = 24 * 3_600_000;
const SWEPT_AT_ONCE = 500;

/** Whether any call of these could be refused: where none can, nothing need be reserved. */
export function isLimited(...budgets: readonly (Budget | undefined)[]): boolean {
  return budgets.some((budget) => budget && Object.values(budget).some((limit) => limit !== undefined));
}

/** For the pulse: whether there is a reservation of a run that no longer runs, or a lock that nobody has taken for long. */
export const RESERVATIONS_LEFT = sql`exists (select 1 from budget_reservations as b
    where not exists (select 1 from runs where runs.id = b.run_id and runs.status = 'running'))
  or (select min(at) from budget_locks) < now_ms() - cast(${LOCK_MS} as bigint)`;

/**
 * How much may be spent. What a call may come to is reserved before it is made and settled with the record of its answer:
 *
 *   reserved (run, step) → settled | released, when its run has ended or waits | reserved anew, by an attempt after a crash
 *
 * Spent is the sum of what was recorded, never a counter beside it. Whoever reserves holds a row for each thing that is limited, first the
 * agent's, then the task's, and looks after that: so two cannot both take what is left for one. Whoever settles turns a reservation into
 * something spent in one transaction, and a look in one statement sees either the one or the other.
 */
export class Budgets {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async reserveIn(tx: Tx, call: CallToReserve): Promise<Reserved> {
    const { run, step, agent, estimate } = call;
    const { root, payer } = await taskOf(tx, run, agent);
    const limits = limitsOf(agent, payer, call.budgetOf);
    if (limits.length === 0) return { maxOutputTokens: null };
    const priced = limits.find(({ unit }) => unit === "cost");
    if (priced && estimate.price === null) return { refused: unpriced(priced, call) };
    if (limits.some(({ scope }) => scope !== "task")) await hold(tx, `agent ${agent}`);
    if (limits.some(({ scope }) => scope === "task")) await hold(tx, `task ${root}`);
    let output = estimate.maxOutputTokens;
    for (const limit of limits) {
      const spent = await spentIn(tx, limit.scope, { agent, root, run, step });
      const affordable = affordableOutput(limit, spent, estimate);
      if (affordable < Math.min(LEAST_OUTPUT_TOKENS, estimate.maxOutputTokens)) return { refused: exceeded(limit, spent, call) };
      output = Math.min(output, affordable);
    }
    const tokens = estimate.inputTokens + output;
    const cost = estimate.price ? costOf({ inputTokens: estimate.inputTokens, outputTokens: output }, estimate.price) : 0;
    await tx.run`insert into budget_reservations (run_id, step, root_id, agent, tokens, cost, at)
      values (${run}, ${step}, ${root}, ${agent}, ${tokens}, ${cost}, now_ms())
      on conflict (run_id, step) do update set root_id = excluded.root_id, agent = excluded.agent, tokens = excluded.tokens,
        cost = excluded.cost, at = excluded.at`;
    return { maxOutputTokens: output < estimate.maxOutputTokens ? output : null };
  }

  /** Whether nothing is left for the message or task that this run goes back to: then nothing more need be begun for it. */
  async spentInTree(tx: Tx, run: string, agent: string, budgetOf: (agent: string) => Budget): Promise<Failure | null> {
    const { root, payer } = await taskOf(tx, run, agent);
    for (const limit of limitsOf(agent, payer, budgetOf).filter(({ scope }) => scope === "task")) {
      const spent = await spentIn(tx, "task", { agent, root, run, step: -1 });
      if (spent[limit.unit] < limit.most) continue;
      const { unit, most, key, words } = limit;
      const message = `the agent "${limit.agent}" may spend ${inWords(unit, { tokens: most, cost: most })} ${words}, and ${inWords(unit, spent)} ${unit === "cost" ? "is" : "are"} spent: nothing more is begun for it`;
      return new Failure("budget.exceeded", message, { details: { agent: limit.agent, key, limit: most, spent: spent[unit] } });
    }
    return null;
  }

  /** In the transaction that records the answer. It counts as what it was, however much was reserved; untold, as what was reserved. */
  async settleIn(tx: Tx, place: CallPlace, used: CallUsage): Promise<void> {
    const held =
      await tx.get<Amount>`delete from budget_reservations where run_id = ${place.run} and step = ${place.step} returning tokens, cost`;
    const untold = held && used.usage === null ? { ...used, usage: { inputTokens: held.tokens, outputTokens: 0 }, cost: held.cost } : used;
    await recordUsageIn(tx, place, untold);
  }

  /** Reservations of runs that no longer run, whoever has left them behind. Any node may call it, often. */
  async sweep(): Promise<number> {
    const left = await this.#store.read.get`select 1 where ${RESERVATIONS_LEFT}`;
    if (!left) return 0;
    return this.#store.transact(
      "release reservations",
      async (tx) => {
        await tx.run`delete from budget_locks where scope in
          (select scope from budget_locks where at < now_ms() - cast(${LOCK_MS} as bigint) order by at limit ${SWEPT_AT_ONCE})`;
        return tx.run`delete from budget_reservations
          where not exists (select 1 from runs where runs.id = budget_reservations.run_id and runs.status = 'running')`;
      },
      "locked",
    );
  }
}

/** The message it all goes back to, and whose that was; null: a person's workflow, which is no agent's. */
async function taskOf(tx: Tx, run: string, agent: string): Promise<{ readonly root: string; readonly payer: string | null }> {
  const row = await tx.get<{
    root: string;
    payer: string | null;
  }>`select coalesce(r.root_id, r.id) as root, coalesce(p.agent, t.agent) as payer
    from runs as r left join runs as p on p.id = r.root_id left join tasks as t on t.id = r.root_id where r.id = ${run}`;
  const root = row?.root ?? run;
  return { root, payer: row?.payer ?? (root === run ? agent : null) };
}

async function hold(tx: Tx, scope: string): Promise<void> {
  await tx.run`insert into budget_locks (scope, at) values (${scope}, now_ms()) on conflict (scope) do update set at = excluded.at`;
}

interface Whose {
  readonly agent: string;
  readonly root: string;
  readonly run: string;
  readonly step: number;
}

/** One statement: what was reserved a moment ago is either still held or spent by now. This very call's own reservation is left out. */
async function spentIn(tx: Tx, scope: Limit["scope"], { agent, root, run, step }: Whose): Promise<Spent> {
  const row = await spentRow(tx, scope, agent, root, run, step);
  return row ?? { tokens: 0, cost: 0, held_tokens: 0, held_cost: 0 };
}

function spentRow(tx: Tx, scope: Limit["scope"], agent: string, root: string, run: string, step: number): Promise<Spent | undefined> {
  if (scope === "day")
    return tx.get<Spent>`select cast(sum(tokens) as bigint) as tokens, cast(sum(cost) as bigint) as cost,
        cast(sum(held_tokens) as bigint) as held_tokens, cast(sum(held_cost) as bigint) as held_cost from (
      select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0) as cost, 0 as held_tokens, 0 as held_cost
        from usage_days where agent = ${agent} and day = ${TODAY}
      union all select 0, 0, coalesce(sum(tokens), 0), coalesce(sum(cost), 0)
        from budget_reservations where agent = ${agent} and not (run_id = ${run} and step = ${step})) as both_sums`;
  // Of a task all is counted, of an agent within another's task its own part.
  const whose = scope === "task" ? null : agent;
  return tx.get<Spent>`select cast(sum(tokens) as bigint) as tokens, cast(sum(cost) as bigint) as cost,
      cast(sum(held_tokens) as bigint) as held_tokens, cast(sum(held_cost) as bigint) as held_cost from (
    select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0) as cost, 0 as held_tokens, 0 as held_cost
      from model_calls where root_id = ${root} and (cast(${whose} as text) is null or agent = ${whose})
    union all select 0, 0, coalesce(sum(tokens), 0), coalesce(sum(cost), 0)
      from budget_reservations where root_id = ${root} and (cast(${whose} as text) is null or agent = ${whose})
        and not (run_id = ${run} and step = ${step})) as both_sums`;
}

function affordableOutput({ unit, most }: Limit, spent: Spent, { inputTokens, maxOutputTokens, price }: Estimate): number {
  if (unit === "tokens") return most - spent.tokens - spent.held_tokens - inputTokens;
  const rate = price as NonNullable<typeof price>;
  const left = most - spent.cost - spent.held_cost - costOf({ inputTokens, outputTokens: 0 }, rate);
  if (left < 0) return -1;
  return rate.output === 0 ? maxOutputTokens : Math.floor(left / rate.output);
}

function exceeded(limit: Limit, spent: Spent, call: CallToReserve): Failure {
  const { inputTokens, price } = call.estimate;
  const outputTokens = Math.min(LEAST_OUTPUT_TOKENS, call.estimate.maxOutputTokens);
  const needed = {
    tokens: inputTokens + outputTokens,
    cost: price ? costOf({ inputTokens, outputTokens }, price) : 0,
  };
  const held = { tokens: spent.held_tokens, cost: spent.held_cost };
  const { unit, most, key, agent } = limit;
  const sums = [`${inWords(unit, spent)} ${unit === "cost" ? "is" : "are"} spent`];
  if (held[unit] > 0) sums.push(`${inWords(unit, held)} reserved by calls that run now`);
  const written = call.written(agent, key);
  return new Failure(
    "budget.exceeded",
    `the agent "${agent}" may spend ${inWords(unit, { tokens: most, cost: most })} ${limit.words} (${written}): ${sums.join(", ")}, and this call needs at least ${inWords(unit, needed)}`,
    { details: { agent, key, written, limit: most, spent: spent[unit], reserved: held[unit], needed: needed[unit] } },
  );
}

function unpriced({ agent, key }: Limit, call: CallToReserve): Failure {
  const { model } = call.estimate;
  const written = call.written(agent, key);
  return new Failure(
    "budget.unpriced",
    `nobody knows what ${model} costs, and the agent "${agent}" may spend only so much (${written}); write \`prices: { ${model}: { input: …, output: … } }\`, in US dollars for a million tokens`,
    { details: { agent, key, written, model } },
  );
}
