import type { Address } from "./address.ts";
import { ANY, missOf, type Rule } from "./rule.ts";

/** Every node divides its rules by one field, in this order; a field that none of them asks for is passed over. */
const FIELDS = ["platform", "chat", "peer", "topic", "guild", "roles", "account", "chatType"] as const;
type Field = (typeof FIELDS)[number];

/** Fewer than these are looked at one after another, which is quicker than to divide them. */
const FEW = 4;

/** Rules that an address may fit. A way from the top passes at most one node for each field. */
interface Node {
  /** The best rule below. */
  readonly best: Rule;
  /** Null: it has only `best` and `others`, and no more below it. */
  readonly field: Field | null;
  readonly others: readonly Rule[];
  /** By what they name; a rule with several roles is below each of them. */
  readonly named: ReadonlyMap<string, Node>;
  /** Those that ask for the field, whatever it is. */
  readonly present: Node | null;
  /** Those that do not ask for it. */
  readonly open: Node | null;
}

const NOTHING: ReadonlyMap<string, Node> = new Map();
const NONE: readonly Rule[] = [];

/**
 * Finds the rules that an address fits without looking at the others: the time depends on how the rules differ in kind, not on how many
 * there are.
 */
export class RuleTree {
  readonly #top: Node | null;

  /** The rules in the order of their rank. */
  constructor(rules: readonly Rule[]) {
    this.#top = divide(rules, 0);
  }

  first(address: Address): Rule | null {
    return this.#top === null ? null : firstBelow(this.#top, address, null);
  }

  /** All that fit, in the order of their rank; of very many, any so many. */
  all(address: Address, limit = Number.POSITIVE_INFINITY): Rule[] {
    const found = new Set<Rule>();
    collect(this.#top, address, found, limit);
    return [...found].sort((a, b) => a.rank - b.rank);
  }
}

/** Whatever is found has a better rank than `found`. What no better rule stands below is not looked at. */
function firstBelow(node: Node, address: Address, found: Rule | null): Rule | null {
  if (found !== null && found.rank < node.best.rank) return found;
  if (node.field === null) return firstAmong(node, address, found);
  let first = found;
  if (node.field === "roles") {
    for (const role of address.roles) {
      const below = node.named.get(role);
      if (below !== undefined) first = firstBelow(below, address, first);
    }
    if (node.present !== null && address.roles.length > 0) first = firstBelow(node.present, address, first);
  } else {
    const value = fieldOf(address, node.field);
    if (value !== null) {
      const below = node.named.get(value);
      if (below !== undefined) first = firstBelow(below, address, first);
      if (node.present !== null) first = firstBelow(node.present, address, first);
    }
  }
  return node.open === null ? first : firstBelow(node.open, address, first);
}

function firstAmong(node: Node, address: Address, found: Rule | null): Rule | null {
  if (missOf(node.best, address) === null) return node.best;
  for (const rule of node.others) {
    if (found !== null && found.rank < rule.rank) return found;
    if (missOf(rule, address) === null) return rule;
  }
  return found;
}

function collect(node: Node | null | undefined, address: Address, found: Set<Rule>, limit: number): void {
  if (!node || found.size >= limit) return;
  if (node.field === null) {
    if (missOf(node.best, address) === null) found.add(node.best);
    for (const rule of node.others) {
      if (found.size >= limit) return;
      if (missOf(rule, address) === null) found.add(rule);
    }
    return;
  }
  const value = node.field === "roles" ? null : fieldOf(address, node.field);
  const values = node.field === "roles" ? address.roles : value === null ? [] : [value];
  for (const one of values) collect(node.named.get(one), address, found, limit);
  if (values.length > 0) collect(node.present, address, found, limit);
  collect(node.open, address, found, limit);
}

function fieldOf(address: Address, field: Exclude<Field, "roles">): string | null {
  switch (field) {
    case "platform":
      return address.platform;
    case "chat":
      return address.chat;
    case "peer":
      return address.peer;
    case "topic":
      return address.topic;
    case "guild":
      return address.guild;
    case "account":
      return address.account;
    case "chatType":
      return address.chatType;
  }
}

function divide(rules: readonly Rule[], from: number): Node | null {
  const [first] = rules;
  if (first === undefined) return null;
  const next = FIELDS.findIndex((field, index) => index >= from && rules.some((rule) => rule[field] !== null));
  const field = FIELDS[next];
  if (rules.length < FEW || field === undefined)
    return { best: first, field: null, others: rules.length === 1 ? NONE : rules.slice(1), named: NOTHING, present: null, open: null };
  const named = new Map<string, Rule[]>();
  const present: Rule[] = [];
  const open: Rule[] = [];
  for (const rule of rules) {
    const asked = rule[field];
    if (asked === null) open.push(rule);
    else if (asked === ANY || asked.length === 0) present.push(rule);
    else for (const value of new Set(typeof asked === "string" ? [asked] : asked)) listIn(named, value).push(rule);
  }
  return {
    best: first,
    field,
    others: NONE,
    named: new Map(Array.from(named, ([value, below]) => [value, divide(below, next + 1) as Node])),
    present: divide(present, next + 1),
    open: divide(open, next + 1),
  };
}

function listIn(lists: Map<string, Rule[]>, key: string): Rule[] {
  const list = lists.get(key) ?? [];
  if (list.length === 0) lists.set(key, list);
  return list;
}
