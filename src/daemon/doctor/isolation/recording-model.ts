import type { Provider } from "../../../abilities/models/model-registry.ts";
import { type Model, type ModelChunk, type ModelRequest, wordsOf } from "../../../kernel/model.ts";

export const RECORDER = "isolation/recorder";

/** A model that repeats what it is told and keeps every prompt it was given: what an agent's model sees, the agent knows. */
export class RecordingModel {
  readonly prompts: string[] = [];

  get provider(): Provider {
    const [provider = "", name = ""] = RECORDER.split("/");
    const model: Model = { name: RECORDER, scripted: true, stream: (request) => this.#answer(request) };
    return { name: provider, model: (asked) => (asked === name ? model : undefined), models: () => [name] };
  }

  /** Those whose instructions are an agent's: by the mark in its personality. */
  promptsWith(mark: string, from = 0): string[] {
    return this.prompts.slice(from).filter((prompt) => prompt.includes(mark));
  }

  async *#answer(request: ModelRequest): AsyncGenerator<ModelChunk, void, void> {
    this.prompts.push(JSON.stringify(request));
    yield { kind: "text", text: `Heard: ${wordsOf(request.messages.at(-1))}` };
    yield { kind: "usage", usage: { inputTokens: 1, outputTokens: 1 } };
  }
}
