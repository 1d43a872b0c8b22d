import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ModelCall } from "../../src/kernel/model.ts";

/** What the model of the victims answers, decided out here. */
export interface Told {
  readonly text: string;
  readonly calls: readonly ModelCall[];
  /** What it says it took; next to nothing when absent. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
}

export interface Asked {
  /** Whose model asks; empty where there is one. */
  readonly node: string;
  /** The message that is to be answered. */
  readonly message: string;
  /** What has come back from the calls so far, answer by answer. */
  readonly results: readonly (readonly { readonly tool: string; readonly text: string; readonly failed: boolean }[])[];
}

/** One question to the model, as it is seen from out here. Times are of this process. */
export interface Exchange {
  readonly node: string;
  readonly message: string;
  /** Answers before it in the same turn. */
  readonly round: number;
  readonly began: number;
  /** When it was answered, or whoever asked was gone. */
  ended: number | null;
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
  /** Everything that was asked, in order. */
  readonly asked: Exchange[] = [];
  /** How long the model thinks; nothing else waits. */
  thinkMs: (asked: Asked, times: number) => number = () => 0;
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
      request.on("end", () => this.#serve(request.url ?? "", JSON.parse(body || "{}"), response));
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

  #serve(path: string, body: Record<string, unknown>, response: ServerResponse): void {
    if (path !== "/answer") return void response.end(JSON.stringify(this.#act(body)));
    const asked = body as unknown as Asked;
    const { node, message, results } = asked;
    const exchange: Exchange = { node, message, round: results.length, began: performance.now(), ended: null };
    this.asked.push(exchange);
    this.answers.set(message, (this.answers.get(message) ?? 0) + 1);
    const answer = (): void => void response.end(JSON.stringify(this.#answer(asked)));
    const ms = this.thinkMs(asked, this.answers.get(message) as number);
    const thinking = ms > 0 ? setTimeout(answer, ms) : undefined;
    response.once("close", () => {
      clearTimeout(thinking);
      exchange.ended = performance.now();
    });
    if (!thinking) answer();
  }

  #act(body: Record<string, unknown>): unknown {
    const { tool, number, key } = body as { tool: string; number: string; key: string };
    const name = `${tool} ${number}`;
    this.done.set(name, (this.done.get(name) ?? 0) + 1);
    this.keyed.set(key, (this.keyed.get(key) ?? new Set()).add(name));
    this.#onEffect?.(tool);
    return { done: name };
  }

  #answer(asked: Asked): Told {
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
