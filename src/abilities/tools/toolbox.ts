import type { Grant } from "../../deciders/policy/grant.ts";
import { ANY_ARGUMENTS, verdictOf } from "../../deciders/policy/may-call.ts";
import type { Policy } from "../../deciders/policy/policy.ts";
import { toolNameProblem } from "../../deciders/policy/tool-name.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { ToolOffer } from "../../kernel/model.ts";
import { Offer } from "../../kernel/tool-offer.ts";
import type { Agent } from "../../records/agents/agent.ts";
import type { Revision } from "../../records/agents/revision.ts";
import type { Tool, ToolSource } from "./tool.ts";

interface Offered {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly policy: Policy;
  readonly offers: readonly ToolOffer[];
}

/** The tools that there are: everybody's, and those of each agent's servers. */
export class Toolbox {
  readonly #built: () => Promise<readonly Tool[]>;
  readonly #added: readonly Tool[];
  #common: Promise<ReadonlyMap<string, Tool>> | undefined;
  readonly #sources: readonly ToolSource[];
  readonly #log: Log;
  /** What was found for a grant last: the next turn of its agent mostly asks the same. */
  readonly #offered = new WeakMap<Grant, Offered>();

  /** `built`: our own, asked for when the first turn needs them. `added`: of the program around us; none may have the name of one of ours. */
  constructor(built: () => Promise<readonly Tool[]>, added: readonly Tool[], sources: readonly ToolSource[], log: Log) {
    for (const { name } of added) {
      const problem =
        toolNameProblem(name) ?? (added.filter((other) => other.name === name).length > 1 ? "there are two of this name" : null);
      if (problem) throw new Failure("usage.wrong", `the tool "${name}" cannot be added: ${problem}`);
    }
    this.#built = built;
    this.#added = added;
    this.#sources = sources;
    this.#log = log;
  }

  /** By name. A source that cannot be reached has none; the others are there. */
  async of(agent: Agent, revision: Revision, signal: AbortSignal): Promise<ReadonlyMap<string, Tool>> {
    this.#common ??= this.#built().then((built) => new Map([...built, ...this.#added].map((tool) => [tool.name, tool])));
    const common = await this.#common;
    if (this.#sources.length === 0) return common;
    const found = await Promise.allSettled(this.#sources.map((source) => source.toolsOf(agent, revision, signal)));
    signal.throwIfAborted();
    const tools = new Map<string, Tool>();
    for (const result of found) {
      if (result.status === "rejected") this.#log.warn("tools are missing", { agent: agent.id, error: String(result.reason) });
      else for (const tool of result.value) tools.set(tool.name, tool);
    }
    if (tools.size === 0) return common;
    // Ours come last: nothing from outside takes the place of one of them.
    return new Map([...tools, ...common]);
  }

  /** Those that a model is told of: which it may call, in an order that stays the same. */
  offersOf(tools: ReadonlyMap<string, Tool>, grant: Grant, policy: Policy): readonly ToolOffer[] {
    const known = this.#offered.get(grant);
    if (known?.tools === tools && known.policy === policy) return known.offers;
    const offers = [...tools.values()]
      .filter(({ name }) => verdictOf({ grant, current: policy, tool: name, args: ANY_ARGUMENTS }) !== "deny")
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((tool) => tool.offer ?? new Offer(tool));
    this.#offered.set(grant, { tools, policy, offers });
    return offers;
  }
}
