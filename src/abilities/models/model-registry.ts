import { asFailure, Failure } from "../../kernel/failure.ts";
import type { Model, ModelPrice, Models } from "../../kernel/model.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { modelChain } from "./model-chain.ts";

export interface Provider {
  readonly name: string;
  /** `hasNext`: another is asked when this one cannot answer. Undefined: there is none by that name. Throws when it cannot be used. */
  model(id: string, hasNext?: boolean): Model | undefined;
  /** Names to suggest; a provider may answer to more. */
  models(): readonly string[];
  /** Absent, or null: not known. */
  priceOf?(id: string): ModelPrice | null;
}

/** Looks up `provider/model`. A wrong name is the trouble of the agent that has it, and of nobody else. */
export function modelRegistry(providers: readonly Provider[]): Models {
  return {
    resolve(names) {
      const wanted = [...new Set(typeof names === "string" ? [names] : names)];
      // From the last: whether another stands ready depends on those after it.
      let hasNext = false;
      const found = wanted
        .toReversed()
        .map((name) => {
          const one = attempted(name, () => lookUp(providers, name, hasNext));
          hasNext ||= one.failure === null;
          return one;
        })
        .toReversed();
      const [first, ...others] = found;
      if (first === undefined) throw new Failure("model.unknown", "no model is named");
      // Of several, those that cannot be used are passed over; where all cannot, the first says why.
      if (found.every(({ failure }) => failure !== null)) throw first.failure;
      return modelChain([first.model, ...others.map(({ model }) => model)]);
    },
    priceOf(name) {
      const { provider, id } = split(name);
      return providers.find((one) => one.name === provider)?.priceOf?.(id) ?? null;
    },
  };
}

function split(name: string): { readonly provider: string; readonly id: string } {
  const at = name.indexOf("/");
  return at < 0 ? { provider: name, id: "" } : { provider: name.slice(0, at), id: name.slice(at + 1) };
}

function lookUp(providers: readonly Provider[], name: string, hasNext: boolean): Model {
  const { provider: first, id } = split(name);
  const provider = providers.find((candidate) => candidate.name === first);
  if (!provider) {
    const known = providers.map((candidate) => candidate.name);
    throw new Failure("model.unknown", `model "${name}": there is no provider "${first}"${didYouMean(first, known)}`);
  }
  const model = id === "" ? undefined : provider.model(id, hasNext);
  if (model) return model;
  throw new Failure("model.unknown", `provider "${first}" has no model "${id}"${didYouMean(id, provider.models())}`);
}

function attempted(name: string, find: () => Model): { readonly model: Model; readonly failure: Failure | null } {
  try {
    return { model: find(), failure: null };
  } catch (error) {
    const failure = asFailure(error);
    return { model: unusable(name, failure), failure };
  }
}

/** Says why it cannot answer when it is asked to. */
function unusable(name: string, failure: Failure): Model {
  return {
    name,
    scripted: true,
    // biome-ignore lint/correctness/useYield: it has nothing to say
    async *stream() {
      throw failure;
    },
  };
}
