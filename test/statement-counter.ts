import { connect, createServer, type Socket } from "node:net";

export interface StatementCounter {
  /** The same database, through the counter. */
  readonly url: string;
  /** How often each statement was sent since the beginning, or since it was last forgotten, the most frequent first. */
  counts(): readonly (readonly [statement: string, times: number])[];
  total(): number;
  forget(): void;
  close(): Promise<void>;
}

const SIMPLE_QUERY = "Q".charCodeAt(0);
const PARSE = "P".charCodeAt(0);
const BIND = "B".charCodeAt(0);
const EXECUTE = "E".charCodeAt(0);

/**
 * Stands between a node and PostgreSQL and counts what is asked, as the server hears it: every Query and every Execute of its protocol, so that BEGIN and
 * COMMIT count like anything else.
 */
export async function countStatements(databaseUrl: string): Promise<StatementCounter> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let counts = new Map<string, number>();
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const spoken = new Frontend((statement) => counts.set(statement, (counts.get(statement) ?? 0) + 1));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (data) => {
      spoken.hear(data);
      upstream.write(data);
    });
    upstream.on("data", (data) => client.write(data));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    counts: () => [...counts].sort(([, a], [, b]) => b - a),
    total: () => counts.values().reduce((sum, count) => sum + count, 0),
    forget: () => {
      counts = new Map();
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

/** One connection, as the client speaks: after a first message without a type, messages of a type, a length and a body. */
class Frontend {
  readonly #asked: (statement: string) => void;
  readonly #prepared = new Map<string, string>();
  #bound = "";
  #rest = Buffer.alloc(0);
  #hasStarted = false;

  constructor(asked: (statement: string) => void) {
    this.#asked = asked;
  }

  hear(data: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const head = this.#hasStarted ? 1 : 0;
      if (this.#rest.length < head + 4) return;
      const end = head + this.#rest.readInt32BE(head);
      if (this.#rest.length < end) return;
      if (this.#hasStarted) this.#message(this.#rest[0] as number, this.#rest.subarray(head + 4, end));
      this.#hasStarted = true;
      this.#rest = this.#rest.subarray(end);
    }
  }

  #message(type: number, body: Buffer): void {
    const [first = "", second = ""] = body.toString("utf8").split("\0", 2);
    if (type === SIMPLE_QUERY) this.#asked(first);
    if (type === PARSE) this.#prepared.set(first, second);
    if (type === BIND) this.#bound = this.#prepared.get(second) ?? "";
    if (type === EXECUTE) this.#asked(this.#bound);
  }
}
