import { isDeepStrictEqual } from "node:util";
import { type Config, configSchema } from "../contract/config.ts";
import { valueAt } from "./value-at.ts";
import type { Edit } from "./yaml-edit.ts";
import { type LookUp, readYaml, type YamlSource } from "./yaml-source.ts";

/** What is each machine's own, whatever the config of all nodes says: where it listens, and by which address it reaches the store. */
export interface OwnSections {
  readonly store: Config["store"];
  /** Absent: nobody can tell any more, and the text's own is as good as any. */
  readonly server?: Config["server"];
}

const OWN = ["server", "store"] as const;

/** The text of another node with our sections in place of its own. What is wrong in those is none of our business. */
export function withOwnSections(source: YamlSource, own: OwnSections): YamlSource {
  const { store: _store, ...shared } = (source.value ?? {}) as Record<string, unknown>;
  const kept = OWN.filter((key) => key !== "server" || own.server !== undefined) as readonly unknown[];
  return {
    ...source,
    value: {
      ...shared,
      ...(own.server === undefined ? {} : { server: own.server }),
      ...(own.store === undefined ? {} : { store: own.store }),
    },
    findings: source.findings.filter(({ path }) => !kept.includes(path[0])),
  };
}

/** What to change in a text of another node so that it says of this machine what `own`, the file here, says. */
export function editsToKeepOwn(text: string, own: string, file: string): Edit[] {
  const [theirs, ours] = [readYaml(text, file, null).value, readYaml(own, file, null).value];
  return OWN.flatMap((key): Edit[] => {
    const [is, wanted] = [valueAt(theirs, [key]), valueAt(ours, [key])];
    if (isDeepStrictEqual(is, wanted)) return [];
    return [{ kind: wanted === undefined ? "remove" : "set", path: [key], value: wanted }];
  });
}

/** Of a text that is broken somewhere: our sections, as far as they are sound. */
export function sectionsLeft(text: string, file: string, lookUp: LookUp): { store?: Config["store"]; server?: Config["server"] } {
  for (const readable of [text, linesOf(text, "store")]) {
    try {
      const { value } = readYaml(readable, file, lookUp);
      const server = configSchema.shape.server.safeParse(valueAt(value, ["server"]) ?? {});
      const store = configSchema.shape.store.safeParse(valueAt(value, ["store"]));
      const isSaid = valueAt(value, ["server"]) !== undefined;
      return { ...(store.success ? { store: store.data } : {}), ...(server.success && isSaid ? { server: server.data } : {}) };
    } catch {
      // No YAML as a whole: the one line by which the others are found may still be.
    }
  }
  return {};
}

function linesOf(text: string, key: string): string {
  return text
    .split(/\r?\n/)
    .filter((line) => line.startsWith(`${key}:`))
    .join("\n");
}
