import type { PolicyLine, Verdict } from "../../contract/policy.ts";
import type { Decision } from "../../kernel/decision.ts";
import { becauseOf, fixOf } from "./finding-in-words.ts";
import { type Grant, holdsOwnRules } from "./grant.ts";
import type { Edge, Layer } from "./layer.ts";
import type { Policy } from "./policy.ts";
import { argumentRefusal, type Refusal, serverRefusal, stateRefusal } from "./refusal.ts";
import { canonicalName, noSuchTool, serverOf } from "./tool-name.ts";

/** Instead of arguments: whether the tool may be called at all. Never what a real call brings. */
export const ANY_ARGUMENTS: unique symbol = Symbol("any arguments");

export interface ToolCall {
  readonly grant: Grant;
  /** The rules of the moment of the call, not those of the run's beginning. */
  readonly current: Policy;
  /** As the model or the caller wrote it. */
  readonly tool: unknown;
  readonly args: unknown;
  /** The folder that relative paths are meant from; the agent's own when absent. */
  readonly workspace?: string;
}

export interface CallDecision extends Decision<PolicyLine> {
  readonly verdict: Verdict;
  /** The tool's canonical name: what may be run. Null: there is none. */
  readonly tool: string | null;
  /** What to change so that it would be allowed: for the first refusal, with a trace for all. Null: nothing needs to be changed, or can. */
  readonly fix: string | null;
}

/** Whether a call may be made: its grant and the rules of the moment, the strictest of all. The trace stays empty. */
export function mayCall(call: ToolCall): CallDecision {
  return new Judgement(call, null).decide();
}

/** The verdict of `mayCall` alone: for whoever asks about every tool there is, and tells nobody why. */
export function verdictOf(call: ToolCall): Verdict {
  return new Judgement(call, null, false).decide().verdict;
}

/** The same, with every rule that was looked at. */
export function explainCall(call: ToolCall): CallDecision {
  return new Judgement(call, []).decide();
}

const NO_TRACE: readonly PolicyLine[] = [];
const UNREADABLE: Refusal = {
  source: "the grant",
  rule: "own rules",
  because: "this grant cannot be read, or holds no rules of its agent: it allows nothing",
  fix: null,
  line: null,
};

/** One decision in the making. Without a trace it ends at the first refusal; with one it looks at everything, and the first refusal still decides. */
class Judgement {
  readonly #call: ToolCall;
  readonly #trace: PolicyLine[] | null;
  /** Whether the reasons are wanted. */
  readonly #inWords: boolean;
  #verdict: Verdict = "allow";
  /** Of the first layer that was asked, until a stricter one decides. */
  #because: string | null = null;
  readonly #fixes: string[] = [];

  constructor(call: ToolCall, trace: PolicyLine[] | null, inWords = true) {
    this.#call = call;
    this.#trace = trace;
    this.#inWords = inWords;
  }

  decide(): CallDecision {
    const { grant, current, args, workspace } = this.#call;
    const { agent } = grant;
    this.#refuse(agent === "" ? UNREADABLE : stateRefusal(agent, current));
    if (this.#verdict !== "deny" && !holdsOwnRules(grant)) this.#refuse(UNREADABLE);
    const tool = canonicalName(this.#call.tool);
    if (tool === null || !current.hasTool(agent, tool)) {
      const server = tool === null ? null : serverOf(tool);
      const because = `${noSuchTool(this.#call.tool, current.toolNames)}${server === null ? "" : `: agent ${agent} has no MCP server ${server}`}`;
      this.#refuse({ source: "the tools", rule: "name", because, fix: null, line: null });
      return this.#decision(null);
    }
    // Of a grant that holds no rules there is nothing more to say.
    if (!holdsOwnRules(grant)) return this.#decision(tool);
    if (this.#goesOn) this.#askLayers(tool);
    if (this.#goesOn && args !== ANY_ARGUMENTS) this.#refuse(argumentRefusal(agent, tool, args, workspace, current));
    return this.#decision(tool);
  }

  get #goesOn(): boolean {
    return this.#verdict !== "deny" || this.#trace !== null;
  }

  #askLayers(tool: string): void {
    const { grant, current } = this.#call;
    for (let index = 0; index < grant.layers.length; index++) {
      const layer = grant.layers[index] as Layer;
      if (isWaived(layer, current)) {
        this.#trace?.push({
          source: layer.source,
          rule: "rights: own",
          file: null,
          line: null,
          hit: false,
          why: edgesInWords(layer, current),
        });
        continue;
      }
      const now = layer.agent === null ? [layer] : current.grantOf(layer.agent).layers;
      if (layer.agent !== null && isFirstOfAgent(grant.layers, index, current)) this.#askCurrent(layer.agent, now, tool);
      if (this.#goesOn) this.#ask(layer, tool, !now.includes(layer));
      if (!this.#goesOn) return;
    }
  }

  /** What the config says of an agent at this moment: asked first, so that a refusal names a line that still stands there. */
  #askCurrent(agent: string, now: readonly Layer[], tool: string): void {
    const { grant, current } = this.#call;
    if (agent !== grant.agent) this.#refuse(stateRefusal(agent, current) ?? serverRefusal(agent, grant.agent, tool, current));
    for (const layer of now) if (!grant.layers.includes(layer)) this.#ask(layer, tool, false);
  }

  #ask(layer: Layer, tool: string, isPast: boolean): void {
    const compiled = this.#call.current.compiled(layer);
    const finding = compiled.find(tool, this.#trace);
    const { verdict } = finding;
    if (this.#inWords) this.#because ??= becauseOf(layer, finding, tool);
    if (verdict === "allow") return;
    const decides = this.#verdict !== "deny" && verdict !== this.#verdict;
    if (decides && this.#inWords) this.#because = `${becauseOf(layer, finding, tool)}${isPast ? "; so it was when this run began" : ""}`;
    if (decides) this.#verdict = verdict;
    if (verdict === "deny" && this.#inWords)
      this.#fixes.push(isPast ? "start a new run, which has the rules of now" : fixOf(compiled, tool));
  }

  #refuse(refusal: Refusal | null): void {
    if (refusal === null) return;
    const { source, rule, because, fix, line } = refusal;
    this.#trace?.push({ source, rule, file: line === null ? null : this.#call.current.file, line, hit: true, why: because });
    if (fix !== null) this.#fixes.push(fix);
    if (this.#verdict === "deny") return;
    this.#verdict = "deny";
    this.#because = because;
  }

  #decision(tool: string | null): CallDecision {
    const fix = this.#fixes.length === 0 ? null : [...new Set(this.#fixes)].join("; and ");
    return { verdict: this.#verdict, tool, because: this.#because ?? UNREADABLE.because, fix, trace: this.#trace ?? NO_TRACE };
  }
}

function isWaived(layer: Layer, current: Policy): boolean {
  return layer.waived_by.length > 0 && layer.waived_by.some((edge) => hasOwnRights(edge, current));
}

function hasOwnRights({ from, to }: Edge, current: Policy): boolean {
  return current.rightsOn(from, to) === "own";
}

function isFirstOfAgent(layers: readonly Layer[], index: number, current: Policy): boolean {
  const { agent } = layers[index] as Layer;
  return layers.findIndex((layer) => layer.agent === agent && !isWaived(layer, current)) === index;
}

function edgesInWords({ waived_by: edges }: Layer, current: Policy): string {
  const words = edges
    .filter((edge) => hasOwnRights(edge, current))
    .map(({ from, to }) => `agents.${from}.subagents.agents gives ${to} its own rights`);
  return `not asked: ${words.join("; ")}`;
}
