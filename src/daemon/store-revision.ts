import { COMMONS } from "../contract/guests.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import { asFailure } from "../kernel/failure.ts";
import type { Redaction } from "../kernel/redact.ts";
import type { ConfigRevisions, RecordRules } from "../records/agents/config-revisions.ts";
import { type Revision, revisionOf } from "../records/agents/revision.ts";
import type { Pools } from "../records/pools/pools.ts";
import { configFailure } from "../settings/config-problem.ts";
import type { Settings } from "../settings/load-settings.ts";
import type { Store } from "../store/store.ts";

export interface RevisionParts {
  readonly store: Store;
  readonly revisions: ConfigRevisions;
  readonly pools: Pools;
  /** This life of the node, and what it is called in every one. */
  readonly node: string;
  readonly name: string;
  readonly redaction: Redaction;
  readonly reached: ReachedPoint;
  /** Of the tools that the program around us brings. */
  readonly toolNames?: readonly string[];
  readonly observe?: ObserveConfig | undefined;
}

/** For whoever wants to know who reads what of a config: sees settings and revisions before anybody else, and may put others in their place. */
export interface ObserveConfig {
  settings(settings: Settings): Settings;
  revision(revision: Revision): Revision;
}

/** Stores the settings as a revision, unless they are the last one's already, and makes the pools what they say. */
export async function storeRevision(
  parts: RevisionParts,
  settings: Settings,
  changes: readonly string[],
  rules: RecordRules = {},
): Promise<Revision> {
  const { store, revisions, pools, node, name, redaction } = parts;
  redaction.add(settings.secrets.values());
  const problems = [...settings.quarantined.values()].flat();
  const wanted = { [COMMONS]: { readers: ["*"], writers: ["*"] }, ...settings.config.pools };
  refuseBadPools(pools, wanted, settings);
  const text = redaction.text(settings.configText);
  const entry = {
    hash: settings.configHash,
    state: "applied" as const,
    node: name,
    actor: node,
    text,
    isWhole: text === settings.configText,
    changes,
    problems,
  };
  const { number } = await store.transact(
    "apply config",
    async (tx) => {
      // The pools first: their rows let one node after the other pass, so that they are as the newest revision says. One that comes too
      // late is refused below, and what it did to them is undone.
      await pools.reconcileIn(tx, wanted);
      return revisions.recordIn(tx, entry, rules);
    },
    "locked",
  );
  parts.reached("config.stored");
  return revisionUnder(parts, settings, number);
}

/** What follows from settings that are stored under this number. */
export function revisionUnder({ redaction, toolNames, observe }: RevisionParts, settings: Settings, number: number): Revision {
  redaction.add(settings.secrets.values());
  const revision = revisionOf(settings, number, toolNames);
  return observe?.revision(revision) ?? revision;
}

/** With the place in the file, which the pools do not know. */
function refuseBadPools(pools: Pools, wanted: Parameters<Pools["checkConfig"]>[0], { configFile, originOf }: Settings): void {
  try {
    pools.checkConfig(wanted);
  } catch (error) {
    const { message, details } = asFailure(error);
    const origin = originOf(["pools", String(details.pool)]);
    if (configFile === null || origin === null) throw error;
    const path = `pools.${details.pool}`;
    const fix = "Correct the schema of its keys; `$ref` must lead somewhere, and patterns must be valid.";
    const said = message.replace(`${path}: `, "");
    throw configFailure([{ severity: "error", code: "config.bad_pool", file: configFile, ...origin, path, message: said, fix }], error);
  }
}
