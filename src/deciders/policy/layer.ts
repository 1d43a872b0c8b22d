import { z } from "zod";
import { PROFILE_NAMES, type ToolRules, toolPattern } from "../../contract/tools.ts";

const line = z.int().positive().nullable();
const entries = z.array(toolPattern).max(500);
const lines = z.array(line).max(500);
const MAX_SOURCE = 500;

/** Where rules stand, so that a refusal can name the line. Says nothing about what they allow. */
const ruleOrigin = z.strictObject({
  file: z.string().nullable(),
  /** The key: `agents.coder.tools`. */
  path: z.string(),
  /** How they are written there; `absent`: nobody wrote them. */
  form: z.enum(["profile", "list", "long", "absent"]),
  line,
  profile: line,
  also_allow: lines,
  allow: lines,
  deny: lines,
  ask: lines,
});
export type RuleOrigin = z.output<typeof ruleOrigin>;

/** `from` may delegate to `to` by name. */
const edge = z.strictObject({ from: z.string(), to: z.string() });
export type Edge = z.output<typeof edge>;

/** One set of rules that every call must pass. */
const layer = z.strictObject({
  /** Whose rules, in words: `agent coder`, `step test`. */
  source: z.string().max(MAX_SOURCE),
  /** The agent whose rules they are: without it they allow nothing. Null: nobody's. */
  agent: z.string().nullable(),
  rules: z.strictObject({
    profile: z.enum(PROFILE_NAMES),
    also_allow: entries,
    allow: entries.nullable(),
    deny: entries,
    ask: entries,
  }),
  origin: ruleOrigin.nullable(),
  /** Not asked while the config of the moment has `rights: own` for one of these. */
  waived_by: z.array(edge).max(100),
});
export interface Layer {
  readonly source: string;
  readonly agent: string | null;
  readonly rules: ToolRules;
  readonly origin: RuleOrigin | null;
  readonly waived_by: readonly Edge[];
}

export const MAX_LAYERS = 100;

/** What a run may call: each of its layers must allow it. Plain JSON, so that it can be stored with the run. */
export const grantSchema = z.strictObject({ agent: z.string().min(1), layers: z.array(layer).min(1).max(MAX_LAYERS) });

/** A layer that is nobody's: a step's, or what a parent gave its child. */
export function layerOf(source: string, rules: ToolRules): Layer {
  // Longer, it could be made and not be read again.
  return { source: source.slice(0, MAX_SOURCE).toWellFormed(), agent: null, rules, origin: null, waived_by: [] };
}
