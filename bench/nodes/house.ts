import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { countStatements, type StatementCounter } from "../../test/statement-counter.ts";
import { type Child, startChild } from "../child.ts";
import { HttpClient } from "../coordination/http-client.ts";
import type { NodeResult, NodeTask } from "./node-worker.ts";

/** Several nodes on one database, with somebody in between who counts what they ask it. */
export interface House {
  readonly counter: StatementCounter;
  /** Posts one message, to the node whose turn it is, in a conversation of its own number. */
  post(conversation: number): Promise<void>;
  /** Until as many turns have ended as messages were posted. */
  settled(): Promise<void>;
  /** From now on processor time counts, until it is told again: then a window ends. */
  mark(): void;
  /** The processor time of all nodes together in each window, after which they stop. */
  end(): Promise<number[]>;
}

interface Started {
  readonly child: Child<NodeResult>;
  readonly token: string;
  readonly client: HttpClient;
}

const CONNECTIONS = 64;
const LOOK_MS = 100;
const PATIENCE_MS = 120_000;

export async function openHouse(
  folder: string,
  database: string,
  schema: string,
  nodes: number,
  account: NodeTask["account"],
  windows: number,
): Promise<House> {
  const counter = await countStatements(database);
  const url = new URL(counter.url);
  url.searchParams.set("schema", schema);
  const started: Started[] = [];
  // One after another: the first makes the tables.
  for (let index = 0; index < nodes; index++) {
    const home = mkdtempSync(join(folder, "home-"));
    const task: NodeTask = { home, name: `node-${index}`, store: url.href, account, windows };
    const child = startChild<NodeResult>("nodes/node-worker.ts", task);
    await child.ready;
    const { url: address } = JSON.parse(readFileSync(join(home, "daemon.json"), "utf8")) as { url: string };
    const token = readFileSync(join(home, "operator.token"), "utf8").trim();
    started.push({ child, token, client: new HttpClient(address, CONNECTIONS) });
  }
  const observer = new pg.Client({ connectionString: database });
  // When the server is taken away because something failed, that is what is told.
  observer.on("error", () => {});
  await observer.connect();
  let posted = 0;
  return {
    counter,
    post: async (conversation) => {
      const number = posted++;
      const { client, token } = started[number % nodes] as Started;
      const peer = `p${conversation}`;
      const message = { id: `m${number}`, platform: "bench", chat: peer, peer, chat_type: "dm", agent: "main", text: "What is it?" };
      const send = () => client.send("POST", "/api/messages", token, message);
      // A connection that has lain idle may be closed just as it is used; the message has an id.
      const { status, body } = await send().catch(send);
      if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`);
    },
    settled: async () => {
      const end = performance.now() + PATIENCE_MS;
      for (;;) {
        const { rows } = await observer.query(`select status, count(*)::int as count from "${schema}".runs group by status`);
        const counts = new Map(rows.map(({ status, count }) => [status as string, count as number]));
        if (counts.get("completed") === posted) return;
        if (counts.has("failed") || performance.now() > end) throw new Error(`of ${posted} turns: ${JSON.stringify([...counts])}`);
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      }
    },
    mark: () => {
      for (const { child } of started) child.go();
    },
    end: async () => {
      const results = await Promise.all(started.map(({ child }) => child.result));
      for (const { client } of started) client.close();
      await observer.end();
      await counter.close();
      return Array.from({ length: windows }, (_, window) => results.reduce((sum, { cpuMs }) => sum + (cpuMs[window] as number), 0));
    },
  };
}
