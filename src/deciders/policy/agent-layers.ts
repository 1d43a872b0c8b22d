import type { ToolRules } from "../../contract/tools.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { type Grant, noRights } from "./grant.ts";
import type { Layer, RuleOrigin } from "./layer.ts";

/** What policy reads of the settings. */
export type PolicySource = Pick<Settings, "home" | "configFile" | "config" | "quarantined" | "originOf">;

const EVERYTHING: ToolRules = { profile: "full", also_allow: [], allow: null, deny: [], ask: [] };

/** What an agent may call by the config: its own rules, else everybody's; and a global `deny` always holds. An agent that is not there: nothing. */
export function grantOf(source: PolicySource, agent: string): Grant {
  const { config } = source;
  // A broken section stands in the config as an empty one, which would allow everything.
  if (!Object.hasOwn(config.agents, agent) || source.quarantined.has(agent)) return noRights(agent);
  const own = config.agents[agent]?.tools;
  const layer = (words: string, rules: ToolRules, origin: RuleOrigin): Layer => ({ source: words, agent, rules, origin, waived_by: [] });
  const first = own
    ? layer(`agent ${agent}`, own, originOf(source, ["agents", agent, "tools"], own))
    : layer(`agent ${agent}, by the global rules`, config.tools ?? EVERYTHING, originOf(source, ["tools"], config.tools));
  const global = config.tools;
  if (!own || !global || global.deny.length === 0) return { agent, layers: [first] };
  const denied = { ...EVERYTHING, deny: global.deny };
  return { agent, layers: [first, layer("the global deny", denied, { ...originOf(source, ["tools"], global), profile: null })] };
}

/** Where each of the rules stands. A short form has no keys of its own: its parts stand where the whole does. */
function originOf(source: PolicySource, path: readonly string[], rules: ToolRules | undefined): RuleOrigin {
  const whole = source.originOf(path);
  const lineOf = (...more: (string | number)[]): number | null => source.originOf([...path, ...more])?.line ?? null;
  const hasOwnPlace = (key: string): boolean => {
    const place = source.originOf([...path, key]);
    return place !== null && (place.line !== whole?.line || place.column !== whole?.column);
  };
  const form = formOf(rules, hasOwnPlace);
  const linesOf = (key: "also_allow" | "allow" | "deny" | "ask"): (number | null)[] =>
    (rules?.[key] ?? []).map((_, index) => (form === "list" ? lineOf(index) : lineOf(key, index)));
  return {
    file: source.configFile === null ? null : (source.configFile.split(/[/\\]/).at(-1) as string),
    path: path.join("."),
    form,
    line: form === "absent" ? null : (whole?.line ?? null),
    profile: form === "profile" ? (whole?.line ?? null) : hasOwnPlace("profile") ? lineOf("profile") : null,
    also_allow: linesOf("also_allow"),
    allow: linesOf("allow"),
    deny: linesOf("deny"),
    ask: linesOf("ask"),
  };
}

function formOf(rules: ToolRules | undefined, hasOwnPlace: (key: string) => boolean): RuleOrigin["form"] {
  if (!rules) return "absent";
  if ((["profile", "also_allow", "allow", "deny", "ask"] as const).some(hasOwnPlace)) return "long";
  // Without a file there are no places: then whatever a short form cannot say is the long one.
  if (rules.also_allow.length + rules.deny.length + rules.ask.length > 0) return "long";
  return rules.allow === null ? "profile" : "list";
}
