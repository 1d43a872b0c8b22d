import type { PolicyLine, Verdict } from "../../contract/policy.ts";
import { PROFILES, type ProfileName, type ToolRules } from "../../contract/tools.ts";
import type { Layer } from "./layer.ts";
import { Matcher } from "./matcher.ts";

/** What a layer says of a tool, and by which of its rules. */
export interface Finding {
  readonly verdict: Verdict;
  readonly rule: "deny" | "profile" | "also_allow" | "allow" | "ask";
  /** The entry that decides; -1 where it is the lack of one. */
  readonly index: number;
}

const IN_PROFILE: Finding = { verdict: "allow", rule: "profile", index: -1 };
const NOT_IN_PROFILE: Finding = { verdict: "deny", rule: "profile", index: -1 };
const NOT_IN_ALLOW: Finding = { verdict: "deny", rule: "allow", index: -1 };

/** Most layers share their profile: it is compiled once for all of them. */
export class ProfileMatchers {
  readonly #compiled = new Map<ProfileName, Matcher>();

  of(profile: ProfileName): Matcher {
    const known = this.#compiled.get(profile);
    if (known) return known;
    const fresh = new Matcher(PROFILES[profile]);
    this.#compiled.set(profile, fresh);
    return fresh;
  }
}

/** A layer, ready to be asked: set = profile and also_allow, of these only `allow` where it is given, without `deny`. */
export class CompiledLayer {
  readonly layer: Layer;
  readonly #profile: Matcher;
  readonly #alsoAllow: Matcher;
  readonly #allow: Matcher | null;
  readonly #deny: Matcher;
  readonly #ask: Matcher;

  constructor(layer: Layer, profiles: ProfileMatchers) {
    const { rules } = layer;
    this.layer = layer;
    this.#profile = profiles.of(rules.profile);
    this.#alsoAllow = new Matcher(rules.also_allow);
    this.#allow = rules.allow === null ? null : new Matcher(rules.allow);
    this.#deny = new Matcher(rules.deny);
    this.#ask = new Matcher(rules.ask);
  }

  /** With a trace, every rule of the layer is added to it. */
  find(tool: string, trace: PolicyLine[] | null): Finding {
    if (trace) this.#explain(tool, trace);
    const denied = this.#deny.find(tool);
    if (denied >= 0) return { verdict: "deny", rule: "deny", index: denied };
    const inProfile = this.#profile.has(tool);
    const added = inProfile ? -1 : this.#alsoAllow.find(tool);
    if (!inProfile && added < 0) return NOT_IN_PROFILE;
    const kept = this.#allow === null ? -1 : this.#allow.find(tool);
    if (this.#allow !== null && kept < 0) return NOT_IN_ALLOW;
    const asked = this.#ask.find(tool);
    if (asked >= 0) return { verdict: "ask", rule: "ask", index: asked };
    if (kept >= 0) return { verdict: "allow", rule: "allow", index: kept };
    return added < 0 ? IN_PROFILE : { verdict: "allow", rule: "also_allow", index: added };
  }

  /** The entries of `deny` that name the tool. */
  denying(tool: string): readonly number[] {
    return this.#deny.all(tool);
  }

  /** What the tool would have to be added to. */
  lacks(tool: string): { readonly profile: boolean; readonly allow: boolean } {
    return {
      profile: !this.#profile.has(tool) && !this.#alsoAllow.has(tool),
      allow: this.#allow !== null && !this.#allow.has(tool),
    };
  }

  #explain(tool: string, trace: PolicyLine[]): void {
    const { source, rules, origin } = this.layer;
    const add = (rule: string, line: number | null, hit: boolean, why: string): void =>
      void trace.push({ source, rule, file: line === null ? null : (origin?.file ?? null), line, hit, why });
    const inProfile = this.#profile.has(tool);
    const isWritten = origin === null || origin.profile !== null;
    // Where other rules are written and no profile is, the default one is no news.
    if (isWritten || !hasEntries(rules))
      add(
        `profile: ${rules.profile}`,
        origin?.profile ?? null,
        inProfile,
        `${isWritten ? "the profile" : "the default profile"} ${rules.profile} ${inProfile ? "has" : "does not have"} ${tool}`,
      );
    const each = (key: "also_allow" | "allow" | "deny" | "ask", matcher: Matcher, says: string): void => {
      const hits = matcher.all(tool);
      for (const [index, entry] of (rules[key] ?? []).entries()) {
        const hit = hits.includes(index);
        add(`${key}: ${entry}`, origin?.[key][index] ?? null, hit, hit ? says : `does not name ${tool}`);
      }
    };
    each("also_allow", this.#alsoAllow, `adds ${tool}`);
    if (this.#allow !== null) each("allow", this.#allow, `keeps ${tool}`);
    each("deny", this.#deny, `denies ${tool}; a deny always wins`);
    each("ask", this.#ask, `asks a person before ${tool}`);
    if (rules.allow !== null && this.#allow?.has(tool) === false)
      add("allow", origin?.allow[0] ?? origin?.line ?? null, true, `only what \`allow\` names stays, and it does not name ${tool}`);
  }
}

function hasEntries({ also_allow, allow, deny, ask }: ToolRules): boolean {
  return allow !== null || also_allow.length + deny.length + ask.length > 0;
}
