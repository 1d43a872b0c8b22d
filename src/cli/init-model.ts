import { say } from "./terminal.ts";

/** Asks a person; `hidden`: what is typed is not shown. */
export type Question = (text: string, hidden?: boolean) => Promise<string>;

/** What the answers are asked about. */
export interface ModelPlace {
  readonly keyed: readonly string[];
  readonly local: { readonly name: string; readonly server: string } | null;
  readonly providers: readonly string[];
  /** Checks a key with its provider and saves it; answers the model, or throws what is wrong with it. */
  take(provider: string, key: string): Promise<{ readonly model: string }>;
}

const TRIES = 3;

/** Who shall answer; undefined: whatever there is. A key is saved only after its provider has accepted it. */
export async function askForModel(question: Question, { keyed, local, providers, take }: ModelPlace): Promise<string | undefined> {
  if (keyed[0] !== undefined) {
    say(`a key for ${keyed[0]} is set: it will answer`);
    return undefined;
  }
  if (local !== null) {
    const answer = (await question(`${local.server} answers on this machine. Use ${local.name}? [Y/n] `)).trim();
    if (!/^n/i.test(answer)) return local.name;
  }
  for (let tries = 0; tries < TRIES; ) {
    const provider = (await question(`Whose model shall answer: ${providers.join(", ")}? [none: scripted answers] `)).trim().toLowerCase();
    if (provider === "" || provider === "none") return undefined;
    if (!providers.includes(provider)) {
      say(`there is no "${provider}" here; name one of them, or nothing`);
      tries++;
      continue;
    }
    for (; tries < TRIES; tries++) {
      const key = (await question(`The key for ${provider} (not shown): `, true)).trim();
      if (key === "") break;
      try {
        const { model } = await take(provider, key);
        say(`${provider} accepts the key`);
        return model;
      } catch (error) {
        say((error as Error).message);
      }
    }
  }
  say("going on without a key; run `guildhall init` again when you have one");
  return undefined;
}
