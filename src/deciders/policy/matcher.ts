import { TOOL_ALIASES, TOOL_GROUPS } from "../../contract/tools.ts";
import { globMatches } from "./glob.ts";

const GROUP = "group:";

/** What one entry of a rule stands for: a wildcard, or names (one, or a group's; none for a group that does not exist). */
export function meaningOf(entry: string): { readonly glob: string } | { readonly names: readonly string[] } {
  const named = Object.hasOwn(TOOL_ALIASES, entry) ? (TOOL_ALIASES[entry] as string) : entry;
  if (named.startsWith(GROUP)) {
    const group = named.slice(GROUP.length);
    return { names: Object.hasOwn(TOOL_GROUPS, group) ? TOOL_GROUPS[group as keyof typeof TOOL_GROUPS] : [] };
  }
  return named.includes("*") ? { glob: named } : { names: [named] };
}

export function entryMatches(entry: string, tool: string): boolean {
  const meaning = meaningOf(entry);
  return "glob" in meaning ? globMatches(meaning.glob, tool) : meaning.names.includes(tool);
}

/** A list of entries, compiled: names are looked up, and only wildcards are tried one after another. */
export class Matcher {
  readonly #entries: readonly string[];
  readonly #names = new Map<string, number>();
  readonly #globs: { readonly glob: string; readonly index: number }[] = [];

  constructor(entries: readonly string[]) {
    this.#entries = entries;
    for (const [index, entry] of entries.entries()) {
      const meaning = meaningOf(entry);
      if ("glob" in meaning) this.#globs.push({ glob: meaning.glob, index });
      else for (const name of meaning.names) if (!this.#names.has(name)) this.#names.set(name, index);
    }
  }

  /** The index of an entry that names the tool, -1 where none does. */
  find(tool: string): number {
    const named = this.#names.get(tool);
    if (named !== undefined) return named;
    for (const { glob, index } of this.#globs) if (glob === "*" || globMatches(glob, tool)) return index;
    return -1;
  }

  has(tool: string): boolean {
    return this.find(tool) >= 0;
  }

  /** Every entry that names the tool: all of them must go before it is no longer named. */
  all(tool: string): number[] {
    return this.#entries.flatMap((entry, index) => (entryMatches(entry, tool) ? [index] : []));
  }
}
