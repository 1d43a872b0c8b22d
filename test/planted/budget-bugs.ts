import type { PlantedBug } from "./bugs.ts";

const BUDGETS = "src/records/usage/budgets.ts";
const ORDER = "src/store/fair-order.ts";
const SLOTS = "src/drivers/dispatch/slots.ts";
const WAITING = "src/records/sessions/waiting.ts";
const budgets = { tests: ["test/contract/budgets.test.ts"] };
const order = { tests: ["test/contract/fair-order.test.ts"] };
const overload = { tests: ["test/scenarios/overload.test.ts"] };

export const BUDGET_BUGS: readonly PlantedBug[] = [
  {
    name: "a call that would exceed its budget is made all the same",
    file: BUDGETS,
    from: "if (affordable < Math.min(LEAST_OUTPUT_TOKENS, estimate.maxOutputTokens)) return",
    to: "if (affordable === Number.NEGATIVE_INFINITY) return",
    ...budgets,
  },
  {
    name: "two calls that ask at once both get what is left for one",
    file: BUDGETS,
    from: "on conflict (scope) do update set at = excluded.at`;",
    to: "on conflict (scope) do nothing`;",
    ...budgets,
    filter: "PostgreSQL",
  },
  {
    name: "what calls that run now have reserved is not counted",
    file: BUDGETS,
    from: 'if (unit === "tokens") return most - spent.tokens - spent.held_tokens - inputTokens;',
    to: 'if (unit === "tokens") return most - spent.tokens - inputTokens;',
    ...budgets,
  },
  {
    name: "a repeated attempt counts beside the first one's reservation",
    file: BUDGETS,
    from: "from budget_reservations where agent = ${agent} and not (run_id = ${run} and step = ${step})) as both_sums`;",
    to: "from budget_reservations where agent = ${agent} and not (run_id = ${run} and step = -${step})) as both_sums`;",
    ...budgets,
  },
  {
    name: "reservations of runs that have ended stay for ever",
    file: BUDGETS,
    from: "where not exists (select 1 from runs where runs.id = budget_reservations.run_id and runs.status = 'running')`;",
    to: "where not exists (select 1 from runs where runs.id = budget_reservations.run_id)`;",
    ...budgets,
  },
  {
    name: "a task is only what the agent itself does",
    file: BUDGETS,
    from: 'const whose = scope === "task" ? null : agent;',
    to: "const whose = agent;",
    ...budgets,
  },
  {
    name: "yesterday's tokens count today",
    file: BUDGETS,
    from: "from usage_days where agent = ${agent} and day = ${TODAY}",
    to: "from usage_days where agent = ${agent} and day <= ${TODAY}",
    ...budgets,
  },
  {
    name: "a model without a price costs nothing",
    file: BUDGETS,
    from: "if (priced && estimate.price === null) return { refused: unpriced(priced, call) };",
    to: "if (priced && estimate.price === null) return { maxOutputTokens: estimate.maxOutputTokens };",
    ...budgets,
  },
  {
    name: "an agent is told what others have used",
    file: "src/records/usage/usage.ts",
    from: 'const whose = caller.kind === "agent" ? caller.name : (agent ?? null);',
    to: "const whose = agent ?? null;",
    ...budgets,
  },
  {
    name: "whoever sends a thousand messages stands in front of everybody who comes later",
    file: ORDER,
    from: "const tag = Math.max(this.#now, row?.first ?? 0, row?.last ?? 0, this.#recent(tenant)) + cost;",
    to: "const tag = Math.max(this.#now, row?.first ?? 0, this.#recent(tenant)) + cost;",
    ...order,
  },
  {
    name: "the line is one of arrival only",
    file: "src/store/claim-work.ts",
    from: 'const IN_ORDER = code("order by priority desc, vtime, id");',
    to: 'const IN_ORDER = code("order by priority desc, id");',
    ...order,
  },
  {
    name: "a weight counts for nothing",
    file: "src/store/work-queue.ts",
    from: "const cost = tenant ? 1 / tenant.weight : 1;",
    to: "const cost = 1;",
    ...order,
  },
  {
    name: "many that come at once for one tenant share one place in the line",
    file: ORDER,
    from: "if (!this.#oneWriter) this.#note(tenant, tag);",
    to: "",
    ...order,
    filter: "PostgreSQL",
  },
  {
    name: "what was parked comes back in front of everybody",
    file: "src/store/settle-work.ts",
    from: "vtime = case when state = 'parked' then ${order.tagged} else vtime end",
    to: "vtime = case when state = 'parked' then vtime else vtime end",
    ...order,
  },
  {
    name: "a claim that leaves tenants out looks only at the beginning of the line",
    file: "src/store/claim-work.ts",
    from: "if (found.length > 0) return found;",
    to: "if (found.length >= 0) return found;",
    ...order,
  },
  {
    name: "one agent with long turns gets every slot",
    file: SLOTS,
    from: "if (slots + 1 > FOR_EACH_FREE * (free - 1)) without.push(tenant);",
    to: "if (slots + 1 > limit) without.push(tenant);",
    tests: ["test/contract/fair-dispatch.test.ts", SLOTS.replace(".ts", ".test.ts")],
  },
  {
    name: "any number of messages may wait for one agent",
    file: WAITING,
    from: "if (own.last >= most)",
    to: "if (own.last > most)",
    ...overload,
  },
  {
    name: "any number of messages may wait",
    file: WAITING,
    from: "return this.#all.last >= limit;",
    to: "return false;",
    ...overload,
    filter: "SQLite",
  },
  {
    name: "a message that was taken is refused when it comes again",
    file: "src/acts/admit-message.ts",
    from: "  if (owner !== runId) return { admission: await firstAdmission(tx, owner), taken: null };\n  const wanted",
    to: "  if (owner !== runId) await message.refuseWhenFull?.(tx, message.decision.agent as string, message.sessionKey as string);\n  if (owner !== runId) return { admission: await firstAdmission(tx, owner), taken: null };\n  const wanted",
    ...overload,
  },
  {
    name: "an answer that is told to last is committed among those that need not",
    file: "src/store/sqlite/group-commit.ts",
    from: 'if (lasts === "with others" && this.#waiting[0]?.lasts === "at once") return undefined;',
    to: "",
    tests: ["src/store/sqlite/lasting.test.ts"],
  },
];
