import type { Config } from "../../contract/config.ts";
import { Secret } from "../../contract/secret.ts";
import { canonicalJson } from "../../kernel/canonical-json.ts";
import type { Settings } from "../../settings/load-settings.ts";

type ConfigState = Pick<Settings, "config" | "quarantined" | "modelKeys">;

/** What is read once, when the daemon starts. */
const AT_START: readonly (keyof Config)[] = ["store", "server"];
const TOLD = 50;

/** What differs, in words, names only: values may be secret. */
export function changesBetween(was: ConfigState, is: ConfigState): string[] {
  const [before, after] = [was.config, is.config];
  const changes = [
    ...[...is.quarantined.keys()].filter((id) => !was.quarantined.has(id)).map((id) => `agent ${id} quarantined`),
    ...[...was.quarantined.keys()].filter((id) => !is.quarantined.has(id)).map((id) => `agent ${id} no longer quarantined`),
    ...agentChanges(before.agents, after.agents),
    ...entryChanges("pool", before.pools, after.pools),
    ...(differs(was.modelKeys.keys, is.modelKeys.keys) || was.modelKeys.ollamaHost !== is.modelKeys.ollamaHost
      ? ["keys of models changed"]
      : []),
    ...(was.modelKeys.localModel === is.modelKeys.localModel ? [] : [`the model on this machine is ${is.modelKeys.localModel}`]),
    ...(Object.keys({ ...before, ...after }) as (keyof Config)[])
      .filter((key) => key !== "agents" && key !== "pools" && differs(before[key], after[key]))
      .map((key) => (AT_START.includes(key) ? `${key} changed; it takes effect at the next start` : `${key} changed`)),
  ];
  return changes.length <= TOLD ? changes : [...changes.slice(0, TOLD), `and ${changes.length - TOLD} more`];
}

function agentChanges(before: Config["agents"], after: Config["agents"]): string[] {
  return entryChanges("agent", before, after).map((change) => {
    const [, id] = /^agent (\S+) changed$/.exec(change) ?? [];
    if (id === undefined) return change;
    const [was, is] = [before[id], after[id]] as [Record<string, unknown>, Record<string, unknown>];
    const keys = Object.keys({ ...was, ...is }).filter((key) => differs(was[key], is[key]));
    return `${change}: ${keys.map((key) => (key === "state" ? `state ${is.state}` : key)).join(", ")}`;
  });
}

function entryChanges(kind: string, before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): string[] {
  const [was, is] = [Object.keys(before), Object.keys(after)];
  return [
    ...is.filter((name) => !Object.hasOwn(before, name)).map((name) => `${kind} ${name} added`),
    ...was.filter((name) => !Object.hasOwn(after, name)).map((name) => `${kind} ${name} removed`),
    ...is.filter((name) => Object.hasOwn(before, name) && differs(before[name], after[name])).map((name) => `${kind} ${name} changed`),
  ];
}

function differs(one: unknown, other: unknown): boolean {
  return one !== other && canonicalJson(revealed(one) ?? null) !== canonicalJson(revealed(other) ?? null);
}

/** A secret that changed is a change; it is compared, and told to nobody. */
function revealed(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(revealed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revealed(inner)]));
}
