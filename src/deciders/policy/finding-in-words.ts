import type { CompiledLayer, Finding } from "./compiled-layer.ts";
import type { Layer, RuleOrigin } from "./layer.ts";

/** What a layer found, with the line that decides. */
export function becauseOf(layer: Layer, { verdict, rule, index }: Finding, tool: string): string {
  const { source, rules, origin } = layer;
  const path = origin?.path ?? null;
  const key = (name: string): string => (path === null ? `\`${name}\` of ${source}` : `${path}.${name}`);
  const allow = origin?.form === "list" ? origin.path : key("allow");
  switch (rule) {
    case "deny":
      return `${key("deny")} has ${rules.deny[index]}${at(origin, origin?.deny[index])}`;
    case "ask":
      return `${key("ask")} has ${rules.ask[index]}${at(origin, origin?.ask[index])}: a person must approve ${tool} first`;
    case "allow":
      return verdict === "allow"
        ? `${allow} has ${rules.allow?.[index]}${at(origin, origin?.allow[index])}`
        : `${allow} does not name ${tool}${at(origin, origin?.allow[0] ?? origin?.line)}`;
    case "also_allow":
      return `${key("also_allow")} has ${rules.also_allow[index]}${at(origin, origin?.also_allow[index])}`;
    case "profile": {
      if (origin?.form === "absent") return `no tools are written, and the default profile ${rules.profile} has ${tool}`;
      const whose = origin?.profile === null ? "the default profile" : "the profile";
      const says = verdict === "allow" ? "has" : "does not have";
      return `${whose} ${rules.profile} of ${path ?? source} ${says} ${tool}${at(origin, origin?.profile)}`;
    }
  }
}

/** Everything to change in a layer so that it allows the tool. */
export function fixOf(compiled: CompiledLayer, tool: string): string {
  const { layer } = compiled;
  const { rules, origin, source } = layer;
  if (origin === null) return `${source} was given no ${tool}; whoever gave it its rules must name ${tool}`;
  const changes = compiled.denying(tool).map((index) => {
    const entry = rules.deny[index] as string;
    const rest = entry === tool ? "" : `, or name there what it stands for without ${tool}`;
    return `remove ${entry} from ${origin.path}.deny${place(origin, origin.deny[index])}${rest}`;
  });
  const lacks = compiled.lacks(tool);
  // Rules that are inherited are everybody's: whoever changes them should know.
  const forWhom = layer.agent !== null && origin.path === "tools" ? " (for every agent without tools of its own)" : "";
  if (lacks.profile) changes.push(`${alsoAllow(rules, origin, tool)}${forWhom}`);
  if (lacks.allow) {
    const list = origin.form === "list" ? origin.path : `${origin.path}.allow`;
    changes.push(`add ${tool} to ${list}${place(origin, origin.allow[0] ?? origin.line)}${forWhom}`);
  }
  return changes.join("; and ");
}

function alsoAllow(rules: Layer["rules"], origin: RuleOrigin, tool: string): string {
  if (origin.form === "profile")
    return `write ${origin.path}: { profile: ${rules.profile}, also_allow: [${tool}] }${place(origin, origin.line)}`;
  if (rules.also_allow.length > 0) return `add ${tool} to ${origin.path}.also_allow${place(origin, origin.also_allow[0])}`;
  return `add also_allow: [${tool}] to ${origin.path}${place(origin, origin.line)}`;
}

function at(origin: RuleOrigin | null, line: number | null | undefined): string {
  return origin?.file == null || line == null ? "" : ` (${origin.file}:${line})`;
}

function place(origin: RuleOrigin, line: number | null | undefined): string {
  return origin.file === null || line == null ? "" : `, ${origin.file}:${line}`;
}
