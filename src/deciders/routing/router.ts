import type { Binding } from "../../contract/bindings.ts";
import type { Config } from "../../contract/config.ts";
import type { Address } from "./address.ts";
import { type NamedAgents, type RouteDecision, type RouteLine, routeUnmatched } from "./route.ts";
import { missOf, type Rule, rulesOf } from "./rule.ts";
import { RuleTree } from "./rule-tree.ts";
import { bindingInWords, lossInWords, missInWords, winInWords } from "./rule-words.ts";

export interface RoutingInput {
  readonly agents: NamedAgents;
  readonly unrouted: Config["unrouted"];
  readonly bindings: readonly Binding[];
  /** The line of the config on which a binding stands; null: there is no file. */
  lineOf(index: number): number | null;
}

interface RuleInWords {
  readonly binding: string;
  readonly line: number | null;
  /** How other rules call it. */
  readonly name: string;
}

/** The operator's own keyboard is no channel: `unrouted: refuse` does not lock them out of `guildhall chat`. */
const OWN_TERMINAL = "terminal";

/**
 * Which agent a message goes to, and why. A pure function of config and address: the same answer on every node.
 *
 * Every binding has one place in one order (tier, then how many fields it names, then the file), and of those that match the first wins.
 */
export class Router {
  readonly #input: RoutingInput;
  readonly #tree: RuleTree;
  readonly #inFile: readonly Rule[];
  readonly #ofPlatform: ReadonlyMap<string, readonly Rule[]>;
  readonly #unmatched: RouteDecision;
  readonly #unmatchedAtHome: RouteDecision;
  /** Decisions without a trace, by the index of the rule: what they say does not depend on the address. Made when first needed. */
  readonly #made: (RouteDecision | undefined)[];
  readonly #words: (RuleInWords | undefined)[];

  constructor(input: RoutingInput) {
    this.#input = input;
    const rules = rulesOf(input.bindings);
    this.#tree = new RuleTree(rules);
    this.#inFile = rules.toSorted((a, b) => a.index - b.index);
    this.#ofPlatform = Map.groupBy(this.#inFile, (rule) => rule.platform);
    this.#unmatched = routeUnmatched(input.agents, input.unrouted);
    this.#unmatchedAtHome = routeUnmatched(input.agents, "default");
    this.#made = new Array(input.bindings.length);
    this.#words = new Array(input.bindings.length);
  }

  /** Without a trace. */
  route(address: Address): RouteDecision {
    return this.#decisionFor(this.#tree.first(address), address);
  }

  /**
   * The same, with a line for every binding, in the order of the file. With a limit, and more bindings than that: the winner, those that
   * matched and lost, then others of the platform, and the number of those left out; this takes no longer the more bindings there are.
   */
  explain(address: Address, limit = Number.POSITIVE_INFINITY): RouteDecision {
    const winner = this.#tree.first(address);
    const told = this.#inFile.length <= limit ? this.#inFile : this.#nearest(winner, address, limit);
    const trace = told.map((rule) => this.#lineFor(rule, winner, address));
    const omitted = this.#inFile.length - told.length;
    return { ...this.#decisionFor(winner, address), trace, ...(omitted > 0 && { omitted }) };
  }

  #decisionFor(winner: Rule | null, address: Address): RouteDecision {
    if (winner === null) return address.platform === OWN_TERMINAL ? this.#unmatchedAtHome : this.#unmatched;
    const made = this.#made[winner.index];
    if (made) return made;
    const { binding, name } = this.#inWords(winner);
    const { agent } = winner.binding;
    const decision: RouteDecision = { agent, tier: winner.tier, binding, because: winInWords(winner, name), trace: [] };
    this.#made[winner.index] = decision;
    return decision;
  }

  #nearest(winner: Rule | null, address: Address, limit: number): Rule[] {
    const told = new Set(winner ? [winner] : []);
    for (const rule of this.#tree.all(address, limit)) if (told.size < limit) told.add(rule);
    for (const rule of this.#ofPlatform.get(address.platform) ?? []) {
      if (told.size >= limit) break;
      told.add(rule);
    }
    return [...told];
  }

  #lineFor(rule: Rule, winner: Rule | null, address: Address): RouteLine {
    const { binding, line } = this.#inWords(rule);
    const miss = missOf(rule, address);
    if (miss !== null) return { binding, line, hit: false, why: missInWords(rule, miss, address) };
    if (winner === null || rule === winner) return { binding, line, hit: true, why: winInWords(rule, this.#inWords(rule).name) };
    return { binding, line, hit: false, why: lossInWords(rule, winner, this.#inWords(winner).name) };
  }

  #inWords(rule: Rule): RuleInWords {
    const known = this.#words[rule.index];
    if (known) return known;
    const line = this.#input.lineOf(rule.index);
    const words = { binding: bindingInWords(rule.binding), line, name: line === null ? `rule ${rule.index + 1}` : `line ${line}` };
    this.#words[rule.index] = words;
    return words;
  }
}
