import { Failure } from "../../kernel/failure.ts";
import type { Model, Models } from "../../kernel/model.ts";
import { didYouMean } from "../../kernel/nearest.ts";

export interface Provider {
  readonly name: string;
  model(name: string): Model | undefined;
  /** Names to suggest; a provider may answer to more. */
  models(): readonly string[];
}

/** Looks up `provider/model`. A wrong name is the trouble of the agent that has it, and of nobody else. */
export function modelRegistry(providers: readonly Provider[]): Models {
  return {
    resolve(names) {
      const name = typeof names === "string" ? names : (names[0] ?? "");
      const [providerName = "", ...rest] = name.split("/");
      const provider = providers.find((candidate) => candidate.name === providerName);
      if (!provider) {
        const known = providers.map((candidate) => candidate.name);
        throw new Failure("model.unknown", `model "${name}": there is no provider "${providerName}"${didYouMean(providerName, known)}`);
      }
      const model = provider.model(rest.join("/"));
      if (model) return model;
      throw new Failure(
        "model.unknown",
        `provider "${providerName}" has no model "${rest.join("/")}"${didYouMean(rest.join("/"), provider.models())}`,
      );
    },
  };
}
