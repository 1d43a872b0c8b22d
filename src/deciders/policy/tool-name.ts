import { BUILT_IN_TOOLS, TOOL_ALIASES, toolPattern } from "../../contract/tools.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { entryMatches } from "./matcher.ts";

const MAX_LENGTH = 200;
const MAX_SHOWN = 6;
const PLAIN = /^[a-z][a-z0-9_]*$/;
const OF_SERVER = /^mcp__([a-z0-9](?:[a-z0-9-]|_(?!_)){0,31})__[a-z0-9_-]+$/;
const SERVER_PREFIX = "mcp__";

/** Exactly as a tool can be named. Nothing is trimmed, folded or unwrapped: what is not a name is no tool. */
export function isToolName(name: string): boolean {
  return name.length <= MAX_LENGTH && (name.startsWith(SERVER_PREFIX) ? OF_SERVER : PLAIN).test(name);
}

/** The server whose tool this is; null for every other tool. */
export function serverOf(name: string): string | null {
  return name.startsWith(SERVER_PREFIX) ? (OF_SERVER.exec(name)?.[1] ?? null) : null;
}

/** The name that a call's name stands for: itself, or what an alias means. Null: it is no tool's name. */
export function canonicalName(called: unknown): string | null {
  if (typeof called !== "string" || !isToolName(called)) return null;
  const meant = Object.hasOwn(TOOL_ALIASES, called) ? (TOOL_ALIASES[called] as string) : called;
  return meant.includes(":") ? null : meant;
}

/** Why a server, a plug-in or a program cannot offer a tool under this name; null where it can. */
export function toolNameProblem(name: string): string | null {
  if (!isToolName(name))
    return `${shown(name)} cannot be a tool's name: expected lowercase letters, digits and _, or mcp__<server>__<tool>, at most ${MAX_LENGTH} characters`;
  if (BUILT_IN_TOOLS.includes(name)) return `${shown(name)} is a built-in tool; give this one another name`;
  if (Object.hasOwn(TOOL_ALIASES, name)) return `${shown(name)} stands for ${TOOL_ALIASES[name]}; give this one another name`;
  if (serverOf(name) !== null) return null;
  const alike = [...BUILT_IN_TOOLS, ...Object.keys(TOOL_ALIASES)].find((tool) => skeleton(tool) === skeleton(name));
  return alike === undefined ? null : `${shown(name)} looks like the built-in ${alike}; give this one another name`;
}

/** `there is no tool "termnal" (did you mean "terminal"?)`. The name is printed so that no look-alike passes for what it is not. */
export function noSuchTool(called: unknown, known: Iterable<string>): string {
  if (typeof called !== "string") return "there is no tool without a name";
  const candidates = [...known];
  const several = toolPattern.safeParse(called).success ? candidates.filter((tool) => tool !== called && entryMatches(called, tool)) : [];
  if (several.length > 0)
    return `there is no tool ${shown(called)}; in rules it stands for ${several.slice(0, MAX_SHOWN).join(", ")}${several.length > MAX_SHOWN ? ", …" : ""}`;
  const bare = plainly(called);
  const meant = didYouMean(bare, candidates) || didYouMean(bare.replace(/^.*(?:[.:/]|__)/s, ""), candidates);
  return `there is no tool ${shown(called)}${meant}`;
}

/** The same for names that a hurried reader takes for each other. */
function skeleton(name: string): string {
  return name
    .replaceAll(/[_-]/g, "")
    .replaceAll(/[1i]/g, "l")
    .replaceAll("0", "o")
    .replaceAll("5", "s")
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");
}

/** Only to guess what was meant; never to decide. */
function plainly(name: string): string {
  return name
    .slice(0, MAX_LENGTH)
    .normalize("NFKC")
    .replaceAll(/[^\p{L}\p{N}_.:/-]/gu, "")
    .toLowerCase();
}

/** In quotes, everything but plain ASCII escaped. */
export function shown(name: string): string {
  const cut = name.length > MAX_LENGTH ? `${name.slice(0, MAX_LENGTH)}…` : name;
  return JSON.stringify(cut).replaceAll(/[^\x20-\x7e…]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
