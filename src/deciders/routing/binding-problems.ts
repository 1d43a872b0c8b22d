import { CHAT_TYPES } from "../../contract/bindings.ts";
import { defaultAgentOf } from "../../contract/config.ts";
import type { Address } from "./address.ts";
import type { RoutingInput } from "./router.ts";
import { ANY, type Conditions, type Rule, rulesOf } from "./rule.ts";
import { RuleTree } from "./rule-tree.ts";
import { bindingInWords } from "./rule-words.ts";

type AgentState = "active" | "paused" | "archived" | "quarantined";

/** Something about the bindings that can hardly be meant. */
export interface BindingProblem {
  readonly severity: "error" | "warning";
  readonly code: string;
  /** The binding; null: the default agent. */
  readonly index: number | null;
  /** The binding it collides with. */
  readonly other?: number;
  readonly message: string;
  readonly fix: string;
}

/** No id is this: no text with a NUL ever comes in. */
const NOBODY_NAMES_THIS = "\0";

/** In the order of the file. Agents that `stateOf` does not know are the config check's to report. */
export function bindingProblems(input: RoutingInput, stateOf: (agent: string) => AgentState | undefined): BindingProblem[] {
  const rules = rulesOf(input.bindings);
  const tree = new RuleTree(rules);
  const nameOf = (index: number): string => {
    const line = input.lineOf(index);
    return line === null ? `rule ${index + 1}` : `line ${line}`;
  };
  const ofRules = rules
    .toSorted((a, b) => a.index - b.index)
    .flatMap((rule) => [...unreachable(rule, tree, nameOf), ...asleep(rule, stateOf(rule.binding.agent))]);
  return [...ofRules, ...ofDefault(input, stateOf)];
}

/**
 * Whether a rule can ever win. It is tried on the messages that have what it asks for and nothing else that any rule could name: what beats
 * it there asks for no more than it does, and so beats it everywhere. What wins there can win.
 */
function unreachable(rule: Rule, tree: RuleTree, nameOf: (index: number) => string): BindingProblem[] {
  const winners = new Set(barest(rule).map((address) => tree.first(address)));
  if (winners.has(rule)) return [];
  const taken = [...winners].filter((winner) => winner !== null).sort((a, b) => a.index - b.index);
  const [first] = taken;
  if (first === undefined) return [];
  const found = { severity: "warning" as const, index: rule.index, other: first.index };
  if (taken.length > 1) {
    const names = taken.map(({ index }) => nameOf(index)).join(", ");
    const message = `${nameOf(rule.index)} is never used: every message it is for goes by ${names}, which are more specific or stand first`;
    return [{ ...found, code: "binding.shadowed", message, fix: "Remove it, or one of those." }];
  }
  const winner = `${nameOf(first.index)} (${bindingInWords(first.binding)})`;
  if (isSame(rule, first)) {
    const message = `${nameOf(rule.index)} is never used: ${winner} asks for the same and stands first`;
    return [{ ...found, code: "binding.duplicate", message, fix: "Remove one of the two." }];
  }
  const message = `${nameOf(rule.index)} is never used: ${winner} takes every message that this is for`;
  const fix = isAsSpecific(rule, first) ? `Put it before ${nameOf(first.index)}, or remove it.` : "Remove it, or the other.";
  return [{ ...found, code: "binding.shadowed", message, fix }];
}

/** One for each type of chat and each role that will do: what the rule leaves open, nobody names, or it is not there. */
function barest(asks: Conditions): Address[] {
  const { platform, account, guild, chat, topic, chatType, peer } = asks;
  const place = {
    platform,
    account: account ?? NOBODY_NAMES_THIS,
    guild: guild === ANY ? NOBODY_NAMES_THIS : guild,
    chat: chat ?? NOBODY_NAMES_THIS,
    topic: topic === ANY ? NOBODY_NAMES_THIS : topic,
    peer: peer ?? NOBODY_NAMES_THIS,
  };
  const types = CHAT_TYPES.filter((type) => chatType === null || chatType === type);
  const roles = asks.roles === null ? [[]] : asks.roles.length === 0 ? [[NOBODY_NAMES_THIS]] : asks.roles.map((role) => [role]);
  return types.flatMap((type) => roles.map((some): Address => ({ ...place, chatType: type, roles: some })));
}

function isSame(a: Conditions, b: Conditions): boolean {
  const plain = ({ platform, account, guild, chat, topic, chatType, peer, roles }: Conditions): string =>
    JSON.stringify([platform, account, guild, chat, topic, chatType, peer, roles && [...new Set(roles)].sort()]);
  return plain(a) === plain(b);
}

function isAsSpecific(a: Rule, b: Rule): boolean {
  return a.tier === b.tier && a.names === b.names;
}

function asleep({ index, binding: { agent } }: Rule, state: AgentState | undefined): BindingProblem[] {
  if (state === undefined || state === "active") return [];
  return [{ severity: "warning", index, ...inWords(agent, state, `it binds messages to "${agent}"`, "Bind it to another agent") }];
}

function ofDefault(input: RoutingInput, stateOf: (agent: string) => AgentState | undefined): BindingProblem[] {
  if (input.unrouted === "refuse") return [];
  const agent = defaultAgentOf(input.agents);
  if (agent === undefined)
    return [
      {
        severity: "error",
        code: "binding.no_default",
        index: null,
        message: "there is no default agent for messages that no rule matches",
        fix: "Write `default: true` in one agent's section, or `unrouted: refuse`.",
      },
    ];
  const state = stateOf(agent);
  if (state === undefined || state === "active") return [];
  const what = `messages that no rule matches go to "${agent}", the default agent`;
  return [{ severity: "warning", index: null, ...inWords(agent, state, what, "Write `default: true` in another agent's section") }];
}

function inWords(
  agent: string,
  state: Exclude<AgentState, "active">,
  what: string,
  instead: string,
): Pick<BindingProblem, "code" | "message" | "fix"> {
  const outcome =
    state === "paused" ? "is paused: they wait" : state === "archived" ? "is archived: they are refused" : "is broken: they are refused";
  const fix = state === "quarantined" ? "Correct the agent's section." : `${instead}, or run \`guildhall agents resume ${agent}\`.`;
  return { code: `binding.agent_${state}`, message: `${what}, which ${outcome}`, fix };
}
