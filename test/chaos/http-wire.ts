import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { instant } from "./http-records.ts";

export interface Answered {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: IncomingHttpHeaders;
  readonly called: number;
  readonly returned: number;
}
export interface Unanswered {
  readonly status: null;
  readonly called: number;
  readonly returned: null;
}
export type Answer = Answered | Unanswered;

export interface Asking {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Which of the daemons; without it, whichever comes up. */
  readonly node?: number;
}

const ANSWER_MS = 10_000;
const UNREACHABLE_MS = 30_000;
const AGAIN_MS = 25;

/**
 * Requests over real sockets, which are never repeated behind the caller's back. What certainly did not arrive (nobody listens) is
 * sent again, as is what was turned away untouched (429); whatever else has no whole answer stays unknown.
 */
export class Wire {
  readonly #urls: readonly string[];
  readonly #token: string;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #choose: () => number;

  constructor(urls: readonly string[], token: string, choose: () => number = Math.random) {
    this.#urls = urls;
    this.#token = token;
    this.#choose = choose;
  }

  async ask(method: string, path: string, asking: Asking = {}): Promise<Answer> {
    const until = instant() + UNREACHABLE_MS * 1_000;
    while (true) {
      const node = asking.node ?? Math.floor(this.#choose() * this.#urls.length);
      const answer = await this.#once(`${this.#urls[node]}${path}`, method, asking);
      if (answer !== "unsent" && answer.status !== 429) return answer;
      if (instant() > until) throw new Error(`nobody takes ${method} ${path}: ${JSON.stringify(answer)}`);
      await sleep(AGAIN_MS);
    }
  }

  /** For what the run itself needs: repeated until it is answered. */
  async insist(method: string, path: string, asking: Asking = {}): Promise<Answered> {
    for (let attempt = 0; attempt < 20; attempt++) {
      const answer = await this.ask(method, path, asking);
      if (answer.status !== null && answer.status < 500) return answer;
      await sleep(AGAIN_MS * 4);
    }
    throw new Error(`${method} ${path} is not answered`);
  }

  close(): void {
    this.#agent.destroy();
  }

  #once(url: string, method: string, { body, headers }: Asking): Promise<Answer | "unsent"> {
    const called = instant();
    const text = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve) => {
      const unknown = () => resolve({ status: null, called, returned: null });
      const all = {
        authorization: `Bearer ${this.#token}`,
        ...(text === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      };
      const sent = request(url, { method, agent: this.#agent, headers: all, timeout: ANSWER_MS }, (response) => {
        let received = "";
        response.setEncoding("utf8");
        response.on("data", (data) => {
          received += data;
        });
        response.once("error", unknown);
        response.once("close", unknown);
        response.once("end", () => {
          const returned = instant();
          if (!response.complete) return unknown();
          // A 5xx may come after the effect as well as before it.
          if ((response.statusCode ?? 500) >= 500 && !received.includes("internal.bug")) return unknown();
          resolve({ status: response.statusCode ?? 500, body: parsed(received), headers: response.headers, called, returned });
        });
      });
      sent.once("timeout", () => sent.destroy());
      sent.once("error", (error: NodeJS.ErrnoException) => (error.code === "ECONNREFUSED" ? resolve("unsent") : unknown()));
      sent.end(text);
    });
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  } catch {
    return { unparsed: text };
  }
}
