import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
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
  readonly results: readonly (readonly { readonly tool: string; readonly text: string; readonly failed: boolean }[])[];
}

/** What the model says; `call` makes a call that no other answer has. */
export type Play = (asked: Asked, call: (tool: string) => ModelCall) => Told;

/**
 * The world outside the daemon: it thinks for the model, and counts what the tools do to it. It lives in the process that kills, so that
 * what it has seen stays true whoever dies. Every answer names its calls by a number that no other answer has.
 */
export class Witness {
  /** How often each thing was really done, by tool and the number in its arguments. */
  readonly done = new Map<string, number>();
  /** Things done under one key, by key: a keyed tool may come twice and counts once. */
  readonly keyed = new Map<string, Set<string>>();
  /** By message: how many answers its model has given. */
  readonly answers = new Map<string, number>();
  readonly #server: Server;
  #number = 0;
  #onEffect: ((tool: string) => void) | null = null;

  readonly #play: Play;

  private constructor(play: Play) {
    this.#play = play;
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (data) => {
        body += data;
      });
      request.on("end", () => response.end(JSON.stringify(this.#hear(request.url ?? "", JSON.parse(body || "{}")))));
    });
  }

  static async start(play: Play = twoRounds): Promise<Witness> {
    const witness = new Witness(play);
    await new Promise<void>((resolve) => witness.#server.listen(0, "127.0.0.1", resolve));
    return witness;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Called in the moment in which something is done, before whoever did it hears of it. */
  set onEffect(hear: ((tool: string) => void) | null) {
    this.#onEffect = hear;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #hear(path: string, body: Record<string, unknown>): unknown {
    if (path === "/answer") return this.#answer(body as unknown as Asked);
    const { tool, number, key } = body as { tool: string; number: string; key: string };
    const name = `${tool} ${number}`;
    this.done.set(name, (this.done.get(name) ?? 0) + 1);
    this.keyed.set(key, (this.keyed.get(key) ?? new Set()).add(name));
    this.#onEffect?.(tool);
    return { done: name };
  }

  #answer(asked: Asked): Told {
    this.answers.set(asked.message, (this.answers.get(asked.message) ?? 0) + 1);
    return this.#play(asked, (tool) => {
      // Whose it is can be seen from outside too.
      const number = `${++this.#number} for ${asked.message}`;
      return { id: `call_${this.#number}`, tool, args: JSON.stringify({ number }) };
    });
  }
}

/** Two rounds of calls, then an answer that tells what came of them. */
const twoRounds: Play = ({ message, results }, call) => {
  if (results.length === 0) return { text: "first", calls: [call("look"), call("put"), call("fire"), call("look")] };
  if (results.length === 1) return { text: "then", calls: [call("fire"), call("put")] };
  return { text: `told ${message}: ${JSON.stringify(results.flat())}`, calls: [] };
};
