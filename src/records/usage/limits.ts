import type { AgentConfig } from "../../contract/config.ts";

export type Budget = NonNullable<AgentConfig["budget"]>;

export interface Amount {
  readonly tokens: number;
  /** In millionths of a US dollar. */
  readonly cost: number;
}

export interface Limit {
  readonly key: keyof Budget;
  /** Whose budget says it. */
  readonly agent: string;
  readonly unit: keyof Amount;
  readonly most: number;
  /** `day`: all that the agent spends on a day. `task`: all that goes back to one message. `part`: of that, what the agent itself spends. */
  readonly scope: "day" | "task" | "part";
  readonly words: string;
}

const MILLIONTHS = 1e6;

/**
 * What applies to a call: the agent's own limit for a day; the limit for a task of the agent whose message it goes back to, over everything
 * that is done for that message; and of an agent that works for another one's message, or in a person's workflow (`payer` null), its own limit for
 * a task over its own part.
 */
export function limitsOf(agent: string, payer: string | null, budgetOf: (agent: string) => Budget): Limit[] {
  const own = budgetOf(agent);
  const limits = [...limitsIn(own, agent, "day", "a day", "usd_per_day", "tokens_per_day")];
  if (payer !== null) limits.push(...limitsIn(budgetOf(payer), payer, "task", "for one message", "usd_per_task", "tokens_per_task"));
  if (payer !== agent) limits.push(...limitsIn(own, agent, "part", "of its own for one message", "usd_per_task", "tokens_per_task"));
  return limits;
}

function limitsIn(budget: Budget, agent: string, scope: Limit["scope"], words: string, usd: keyof Budget, tokens: keyof Budget): Limit[] {
  const limits: Limit[] = [];
  const [money, count] = [budget[usd], budget[tokens]];
  if (money !== undefined) limits.push({ key: usd, agent, unit: "cost", most: Math.round(money * MILLIONTHS), scope, words });
  if (count !== undefined) limits.push({ key: tokens, agent, unit: "tokens", most: count, scope, words });
  return limits;
}

export function inWords(unit: keyof Amount, amount: Amount): string {
  return unit === "tokens" ? `${amount.tokens} tokens` : `${Number((amount.cost / MILLIONTHS).toFixed(6))} USD`;
}
