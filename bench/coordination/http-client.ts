import { Agent, request } from "node:http";

export interface Answer<Body> {
  readonly status: number;
  readonly body: Body;
}

/** A bare HTTP client with kept connections: what is measured is the daemon, on the same cores. */
export class HttpClient {
  readonly #url: URL;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#url = new URL(url);
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  send<Body>(
    method: string,
    path: string,
    token: string,
    content?: unknown,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer<Body>> {
    const data = content === undefined ? undefined : Buffer.from(JSON.stringify(content));
    const about = data && { "content-type": "application/json", "content-length": data.length };
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: this.#url.hostname,
          port: this.#url.port,
          path,
          method,
          agent: this.#agent,
          headers: { authorization: `Bearer ${token}`, ...about, ...more },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("error", reject);
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(parts).toString()) as Body }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(data);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
