import { findLocalModel } from "../abilities/models/local-servers.ts";
import type { Log } from "../kernel/log.ts";
import { wantsLocalModel } from "../records/agents/default-models.ts";
import type { Settings } from "../settings/load-settings.ts";

/** What answers on this machine, for agents that name no model. Nothing waits for it: who is not found in time is taken up later. */
export class LocalModels {
  #name: string | null = null;
  #looking: Promise<string | null> | undefined;

  /** Looks once, and only where it would be of use. */
  lookFor(settings: Settings): Promise<string | null> {
    this.#looking ??= wantsLocalModel(settings) ? this.#look(settings) : Promise.resolve(null);
    return this.#looking;
  }

  /** The settings with what was found so far. */
  in(settings: Settings): Settings {
    if (this.#name === null || !settings.modelKeys.looksForLocal) return settings;
    return { ...settings, modelKeys: { ...settings.modelKeys, localModel: this.#name } };
  }

  async #look(settings: Settings): Promise<string | null> {
    this.#name = (await findLocalModel(settings).catch(() => null))?.name ?? null;
    return this.#name;
  }
}

/** What newcomers must know: by whom they are answered. */
export function tellDefault(log: Log, settings: Settings): void {
  if (settings.modelKeys.localModel !== null && wantsNone(settings))
    log.info("no model is named and no key is set: a model on this machine answers", { model: settings.modelKeys.localModel });
}

function wantsNone({ config }: Settings): boolean {
  return config.model === undefined && Object.values(config.agents).some(({ model }) => model === undefined);
}
