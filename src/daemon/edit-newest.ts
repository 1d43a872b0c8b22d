import { Failure } from "../kernel/failure.ts";
import { ConfigRevisions } from "../records/agents/config-revisions.ts";
import { type EditBase, type EditedConfig, editConfig } from "../settings/edit-config.ts";
import type { Environment, Whereabouts } from "../settings/home.ts";
import { loadSettings, type Settings } from "../settings/load-settings.ts";
import type { Edit } from "../settings/yaml-edit.ts";

/**
 * Changes the config file, whether or not a daemon runs. Where nodes share a store and the file holds an older revision, the change is written
 * into the newest text, which then stands in the file: a change of the older one would be taken for a wish to have the rest of it back too.
 */
export async function editNewest(
  where: Whereabouts,
  environment: Environment,
  decide: (now: Settings) => readonly Edit[],
): Promise<EditedConfig> {
  return editConfig(where, environment, decide, await baseFor(loadSettings(where, environment)));
}

/** Puts the newest text into the file, if that holds an older one. Whoever wants to edit it by hand begins with this. */
export async function pullNewest(where: Whereabouts, environment: Environment): Promise<EditedConfig> {
  const base = await baseFor(loadSettings(where, environment));
  return editConfig(where, environment, () => [], base && { ...base, isWanted: true });
}

export function isShared({ storeLocation }: Pick<Settings, "storeLocation">): boolean {
  return !storeLocation.startsWith("sqlite:");
}

/** Undefined: what the file says is to be edited. A text that nobody has applied is the operator's, and will be the newest. */
async function baseFor({ configHash, configText, storeLocation }: Settings): Promise<EditBase | undefined> {
  if (!isShared({ storeLocation })) return undefined;
  const { openStore } = await import("../store/store.ts");
  const store = await openStore(storeLocation);
  try {
    const revisions = new ConfigRevisions(store);
    const newest = await revisions.newest();
    if (!newest || newest.hash === configHash) return undefined;
    if (configText.trim() !== "" && (await revisions.numberOf(configHash)) === undefined) return undefined;
    const { text } = await revisions.textOf(newest);
    if (text !== null) return { text, instead: configHash };
    throw new Failure("config.changed", `the file is older than revision ${newest.number}, which is known to node ${newest.node} alone`, {
      hint: "A secret is written in that one: make the change there, or put the same file here first.",
    });
  } finally {
    await store.close();
  }
}
