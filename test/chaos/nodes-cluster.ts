import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type PostgresServer, startPostgres } from "../postgres-server.ts";
import { type TcpProxy, tcpProxy } from "../tcp-proxy.ts";
import { DaemonLife } from "./daemon-life.ts";

/** What a node is doing: it may be called in `up` only, though it may have been stopped or cut off in the same moment. */
type Doing = "up" | "down" | "stopped" | "cut off";

const NAMES = ["north", "east", "west"];
/** A server that comes back from a crash, and a node that cannot reach it yet, are tried again for so long. */
const PATIENCE_MS = 60_000;
const CALL_MS = 6_000;

export interface ClusterOptions {
  readonly config: object;
  readonly witness: string;
  /** The daemon's own when absent. */
  readonly leaseMs?: number;
  /** What each node finds in its environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Where the nodes keep everything; without `crash` it is somebody else's as well, and stays as it is. */
export interface ClusterServer {
  readonly url: string;
  readonly crash?: Pick<PostgresServer, "kill" | "stop" | "start">;
}

/** One PostgreSQL of its own, which keeps what it has promised. */
export async function crashableServer(): Promise<ClusterServer & { remove(): Promise<void> }> {
  const server = await startPostgres({ shared_buffers: "'64MB'" });
  return { url: server.url, crash: server, remove: () => server.remove() };
}

/** A node: a home and a way to the database of its own, and one daemon after another. */
export class ClusterNode {
  readonly name: string;
  readonly #home: string;
  readonly #proxy: TcpProxy;
  readonly #store: string;
  readonly #options: ClusterOptions;
  doing: Doing = "down";
  #life: DaemonLife | null = null;

  constructor(name: string, home: string, proxy: TcpProxy, store: string, options: ClusterOptions) {
    this.name = name;
    this.#home = home;
    this.#proxy = proxy;
    this.#store = store;
    this.#options = options;
    mkdirSync(home);
    writeFileSync(join(home, "guildhall.yaml"), JSON.stringify(options.config));
  }

  get life(): DaemonLife {
    if (!this.#life) throw new Error(`${this.name} has not begun`);
    return this.#life;
  }

  /** As whoever looks after a node does it: it is started until it stays. */
  async begin(patienceMs = PATIENCE_MS): Promise<void> {
    const { witness, leaseMs, environment } = this.#options;
    const plan = { home: this.#home, witness, name: this.name, crash: null, ...(leaseMs === undefined ? {} : { leaseMs }) };
    const until = Date.now() + patienceMs;
    for (;;) {
      try {
        this.#life = await DaemonLife.begin(plan, { ...environment, GUILDHALL_STORE: this.#store });
        this.doing = "up";
        return;
      } catch (error) {
        if (Date.now() > until) throw error;
        await sleep(300);
      }
    }
  }

  async kill(): Promise<void> {
    this.doing = "down";
    await this.#life?.kill();
  }

  /** Stopped as a machine that stands still is: what it has open stays open. */
  async pause(ms: number): Promise<void> {
    this.doing = "stopped";
    this.life.signal("SIGSTOP");
    await sleep(ms);
    this.life.signal("SIGCONT");
    this.doing = "up";
  }

  /** It reaches everything but the database, and nobody tells it. */
  async partition(ms: number): Promise<void> {
    this.doing = "cut off";
    this.#proxy.hold();
    await sleep(ms);
    this.#proxy.letPass();
    this.doing = "up";
  }

  /** Whoever calls may never hear of it: the result is then unknown. */
  call<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    return this.life.call<Answer>(method, path, body, AbortSignal.timeout(CALL_MS));
  }

  async end(): Promise<void> {
    this.#life?.signal("SIGCONT");
    await this.kill();
    await this.#proxy.close();
  }
}

/** Three nodes on one database. */
export class Cluster {
  readonly nodes: readonly ClusterNode[];
  readonly #folder: string;
  readonly #server: ClusterServer;
  readonly #schema: string;

  private constructor(nodes: readonly ClusterNode[], folder: string, server: ClusterServer, schema: string) {
    this.nodes = nodes;
    this.#folder = folder;
    this.#server = server;
    this.#schema = schema;
  }

  static async start(server: ClusterServer, options: ClusterOptions): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "guildhall-nodes-"));
    const schema = `nodes_${process.pid}_${Math.floor(Math.random() * 1e9)}`;
    const nodes = await Promise.all(
      NAMES.map(async (name) => {
        const url = new URL(server.url);
        const proxy = await tcpProxy(Number(url.port));
        url.port = String(proxy.port);
        url.searchParams.set("schema", schema);
        return new ClusterNode(name, join(folder, name), proxy, url.toString(), options);
      }),
    );
    const cluster = new Cluster(nodes, folder, server, schema);
    try {
      // The first makes the tables: three at once would only wait for each other.
      for (const node of nodes) await node.begin(0);
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  /** One that can be called, as far as anybody knows. */
  pick(random: () => number): ClusterNode | undefined {
    const up = this.nodes.filter(({ doing }) => doing === "up");
    return up[Math.floor(random() * up.length)];
  }

  /** Past the nodes, as the operator would look. */
  async look<Row extends Record<string, unknown>>(statement: string, values: readonly unknown[] = []): Promise<Row[]> {
    const client = new pg.Client(this.#server.url);
    client.on("error", () => {});
    await client.connect();
    try {
      await client.query(`set search_path to "${this.#schema}"`);
      return (await client.query(statement, [...values])).rows as Row[];
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** `kill`: without a word, not even to its own processes. */
  async crashServer(how: "immediate" | "kill", downMs: number): Promise<void> {
    const { crash } = this.#server;
    if (!crash) throw new Error("this server is not to be crashed");
    if (how === "kill") crash.kill();
    else await crash.stop("immediate");
    await sleep(downMs);
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await crash.start();
      } catch (error) {
        // The processes of a killed server end by themselves, and until then the next one may not begin.
        if (Date.now() > until) throw error;
        await sleep(200);
      }
    }
  }

  async remove(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.end()));
    await this.look(`drop schema if exists "${this.#schema}" cascade`).catch(() => {});
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
