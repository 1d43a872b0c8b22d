import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../kernel/clock.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Models } from "../../kernel/model.ts";
import { type Random, systemRandom } from "../../kernel/random.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { Breaker } from "./breaker.ts";
import { factsOf, pricesOf } from "./model-facts.ts";
import { modelRegistry, type Provider } from "./model-registry.ts";
import { offlineProvider } from "./offline-model.ts";
import { type OpenModel, openProvider } from "./providers/open-provider.ts";
import { providerModel } from "./providers/provider-model.ts";
import { keyNameOf, type ProviderSpec, providerSpecs } from "./providers/provider-specs.ts";
import { PATIENCE, PATIENCE_WITH_NEXT, type Patience, type Time } from "./resilient-model.ts";

type ModelSettings = Pick<Settings, "config" | "modelKeys">;

export interface ConfiguredOptions {
  /** Besides those of the config: of the program around us, or of a self-test. They come first. */
  readonly providers?: readonly Provider[];
  readonly time?: Time;
  readonly random?: Random;
  readonly patience?: Partial<Patience>;
}

export const systemTime: Time = {
  now: () => systemClock.now(),
  sleep: async (ms, signal) => void (await sleep(ms, undefined, { signal })),
};

/** What outlives a revision: a provider that is the same in the next one keeps its connection settings, and its breaker what it has seen. */
interface Opened {
  readonly breaker: Breaker;
  readonly open: () => Promise<OpenModel>;
}

/** The models of the config as it is at each moment: `current` is asked whenever one is looked up. */
export function configuredModels(current: () => ModelSettings, options: ConfiguredOptions = {}): Models {
  const time = options.time ?? systemTime;
  let opened = new Map<string, Opened>();
  let last: { readonly settings: ModelSettings; readonly models: Models } | undefined;
  const modelsNow = (): Models => {
    const settings = current();
    if (last?.settings === settings) return last.models;
    const kept = new Map<string, Opened>();
    const prices = pricesOf(settings);
    const providers = [...providerSpecs(settings).values()].map((spec): Provider => {
      const key = identityOf(spec);
      const shared = opened.get(key) ?? { breaker: new Breaker(time), open: once(() => openProvider(spec)) };
      kept.set(key, shared);
      return {
        name: spec.name,
        models: () => [],
        priceOf: (id) => factsOf(spec, id, prices).price,
        model: (id, hasNext = false) => {
          refuseUnusable(spec, id);
          const patience = { ...(hasNext ? PATIENCE_WITH_NEXT : PATIENCE), ...options.patience };
          const facts = factsOf(spec, id, prices);
          return providerModel({ spec, id, facts, ...shared, patience, time, random: options.random ?? systemRandom });
        },
      };
    });
    opened = kept;
    last = { settings, models: modelRegistry([offlineProvider, ...(options.providers ?? []), ...providers]) };
    return last.models;
  };
  return {
    resolve: (names) => modelsNow().resolve(names),
    priceOf: (name) => modelsNow().priceOf?.(name) ?? null,
  };
}

/** Of one text of the config, for whoever does not follow it. */
export function modelsOf(settings: ModelSettings, options: ConfiguredOptions = {}): Models {
  return configuredModels(() => settings, options);
}

function refuseUnusable(spec: ProviderSpec, id: string): void {
  const { name, baseUrl, apiKey, needsKey } = spec;
  if (baseUrl === "")
    throw new Failure("model.unknown", `model "${name}/${id}": the provider "${name}" has no base_url`, {
      hint: `Write providers: { ${name}: { base_url: http://… } }.`,
    });
  if (needsKey && apiKey === null)
    throw new Failure("model.no_key", `model "${name}/${id}": there is no key for the provider "${name}"`, {
      hint: `Put ${keyNameOf(spec)}=… into .env in the home, or name another model.`,
    });
  if (apiKey !== null && /[^\x20-\x7e]/.test(apiKey.reveal()))
    throw new Failure("model.no_key", `model "${name}/${id}": the key for the provider "${name}" has signs in it that no key has`, {
      hint: "Copy it again from the provider: it is one line of letters, digits and signs.",
    });
}

/** Without the key itself: this stays in memory as long as the provider does. */
function identityOf({ name, type, baseUrl, apiKey }: ProviderSpec): string {
  return createHash("sha256")
    .update(JSON.stringify([name, type, baseUrl, apiKey?.reveal() ?? null]))
    .digest("base64");
}

/** The first call's, for all; one that failed is made again. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
