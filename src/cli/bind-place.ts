import { InvalidArgumentError } from "commander";
import { KNOWN_CHANNELS } from "../contract/bindings.ts";

/** A chat, or a topic of one, that goes to an agent. */
export interface Place {
  readonly platform: string;
  readonly chat: string;
  readonly topic?: string;
}

/** `platform:chat` or `platform:chat:topic`, one more beside those before. */
export function place(text: string, before: readonly Place[]): Place[] {
  const [, platform, chat, topic] = /^([a-z0-9][a-z0-9_-]*):([^:]+)(?::(.+))?$/.exec(text) ?? [];
  if (platform === undefined || chat === undefined)
    throw new InvalidArgumentError("Expected <platform>:<chat> or <platform>:<chat>:<topic>, for example telegram:-100123.");
  return [...before, { platform, chat, ...(topic === undefined ? {} : { topic }) }];
}

/** In the words of the config, without the agent. */
export function bindingOf({ platform, chat, topic }: Place): Record<string, unknown> {
  const more = topic === undefined ? {} : { topic };
  if ((KNOWN_CHANNELS as readonly string[]).includes(platform)) return { [platform]: chat, ...more };
  return { match: { platform, chat, ...more } };
}
