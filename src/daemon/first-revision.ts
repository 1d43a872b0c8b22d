import { asFailure, Failure, isFailure } from "../kernel/failure.ts";
import { changesBetween } from "../records/agents/config-changes.ts";
import { ConfigRevisions, type NewestRevision } from "../records/agents/config-revisions.ts";
import type { Revision } from "../records/agents/revision.ts";
import type { Environment, Whereabouts } from "../settings/home.ts";
import { type LoadOptions, loadSettingsAside, remainsOf, type Settings } from "../settings/load-settings.ts";
import type { FirstFile } from "./file-here.ts";
import type { ReloadParts } from "./reload.ts";
import { revisionUnder, storeRevision } from "./store-revision.ts";
import { ownSectionsOf, storedSettings } from "./stored-settings.ts";
import { refusalInWords } from "./tell-config.ts";

/**
 * What to begin with where the file cannot be used: the newest text that was applied, where it can be found out by which store. Undefined:
 * there is none to be had, and what is wrong with the file is to be told.
 */
export async function rescueSettings(
  where: Whereabouts,
  environment: Environment,
  known: Omit<LoadOptions, "text" | "own">,
): Promise<Settings | undefined> {
  const { storeLocation, store: address, server } = remainsOf(where, environment);
  if (storeLocation === null) return undefined;
  const { openStore } = await import("../store/store.ts");
  let store: Awaited<ReturnType<typeof openStore>> | undefined;
  try {
    store = await openStore(storeLocation);
    const revisions = new ConfigRevisions(store);
    const newest = await revisions.newest();
    const own = { store: address, ...(server === null ? {} : { server }) };
    return (
      newest && (await storedSettings(revisions, (text) => loadSettingsAside(where, environment, { ...known, text, own }), newest, own))
    );
  } catch (error) {
    if (isFailure(error)) return undefined;
    throw error;
  } finally {
    await store?.close();
  }
}

export interface First {
  readonly revision: Revision;
  readonly file: FirstFile;
}

/** The revision of a daemon whose file could not be used: the stored one that its settings were read from. */
export async function rescuedRevision(parts: ReloadParts, settings: Settings, trouble: Failure): Promise<First> {
  const number = (await parts.revisions.numberOf(settings.configHash)) ?? 0;
  const { configFile, log } = parts;
  log.error("the config file cannot be used; started with what is stored", {
    file: configFile,
    revision: number,
    problems: refusalInWords(trouble),
  });
  return { revision: revisionUnder(parts, settings, number), file: { hash: null, trouble: trouble.message } };
}

/**
 * The revision to begin with, by what the file says: the newest one, an older one (then the newest is taken, for whoever has changed it knew
 * what was there), or one that nobody has seen (then it is the newest from now on). Where nothing is shared, the file is the truth.
 */
export async function firstRevision(parts: ReloadParts, file: Settings, isGiven: boolean): Promise<First> {
  const { revisions, store } = parts;
  for (;;) {
    const newest = store.kind === "postgres" ? await revisions.newest() : undefined;
    const hash = file.configHash;
    // No file says nothing: it must not take away what the others run on.
    const isNone = !isGiven && file.configText.trim() === "";
    const older = newest && newest.hash !== hash ? await revisions.numberOf(hash) : undefined;
    if (newest && newest.hash !== hash && (isNone || older !== undefined))
      return { revision: await takeStored(parts, file, newest, isNone ? undefined : older), file: { hash } };
    try {
      const rules = store.kind === "postgres" ? { after: newest?.number ?? null } : {};
      return { revision: await storeRevision(parts, file, ["as it was when the daemon started"], rules), file: { hash } };
    } catch (error) {
      if (!isFailure(error, "config.changed")) throw error;
    }
  }
}

async function takeStored(parts: ReloadParts, file: Settings, newest: NewestRevision, older: number | undefined): Promise<Revision> {
  const { revisions, read, log, configFile } = parts;
  const { number, node } = newest;
  try {
    const settings = await storedSettings(revisions, read, newest, ownSectionsOf(file));
    const said = { file: configFile, revision: number, node };
    if (older === undefined) log.info("there is no config file here; what is stored is in force", said);
    else if (changesBetween(file, settings).length > 0)
      log.warn("the config file is older than what is stored; the stored one is in force, and the file is not", { ...said, older });
    return revisionUnder(parts, settings, number);
  } catch (error) {
    if (!isFailure(error, "config.invalid")) throw error;
    if (older !== undefined) return revisionUnder(parts, file, older);
    const { message, hint } = asFailure(error);
    throw new Failure("config.invalid", `there is no config file here, and the stored config cannot be used: ${message}`, {
      hint,
      cause: error,
    });
  }
}
