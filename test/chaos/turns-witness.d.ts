import type { ModelCall } from "../../src/kernel/model.ts";
/** What the model of the victims answers, decided out here. */
export interface Told {
  readonly text: string;
  readonly calls: readonly ModelCall[];
}
export interface Asked {
  /** The message that is to be answered. */
  readonly message: string;
  /** What has come back from the calls so far, answer by answer. */
  readonly results: readonly (readonly {
    readonly tool: string;
    readonly text: string;
    readonly failed: boolean;
  }[])[];
}
/**
 * The world outside the daemon: it thinks for the model, and counts what the tools do to it. It lives in the process that kills, so that
 * what it has seen stays true whoever dies. Every answer names its calls by a number that no other answer has.
 */
export declare class Witness {
  #private;
  /** How often each thing was really done, by tool and the number in its arguments. */
  readonly done: Map<string, number>;
  /** Things done under one key, by key: a keyed tool may come twice and counts once. */
  readonly keyed: Map<string, Set<string>>;
  /** By message: how many answers its model has given. */
  readonly answers: Map<string, number>;
  private constructor();
  static start(): Promise<Witness>;
  get url(): string;
  /** Called in the moment in which something is done, before whoever did it hears of it. */
  set onEffect(hear: ((tool: string) => void) | null);
  close(): void;
}
