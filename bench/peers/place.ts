import pg from "pg";
import { Home } from "../../test/scenarios/guildhall.ts";
import { type Child, startChild } from "../child.ts";
import { IDENTITIES, POOLS } from "./guildhall.ts";
import type { SideResult, SideTask, SystemName } from "./side-by-side-worker.ts";
import type { House } from "./system.ts";

export type Act = SideTask["act"];

/** A system with a database of its own, on a server that syncs every commit. What it does, it does in processes of its own. */
export class Place {
  readonly #system: SystemName;
  readonly #url: string;
  readonly #homes: Home[] = [];
  #house: House | null = null;

  private constructor(system: SystemName, url: string) {
    this.#system = system;
    this.#url = url;
  }

  static async make(server: string, system: SystemName): Promise<Place> {
    const client = new pg.Client(server);
    await client.connect();
    await client.query(`create database ${system}`);
    await client.end();
    const url = new URL(server);
    url.pathname = `/${system}`;
    const place = new Place(system, url.toString());
    await place.query("create table effects (run text not null, by text not null)");
    if (system === "guildhall") place.#house = await place.#openHouse();
    // Alone, so that nobody else makes the same tables at the same time.
    await place.run({ do: "nothing" });
    return place;
  }

  start<Result extends SideResult>(act: Act, seat = 0): Child<Result> {
    const task: SideTask = { system: this.#system, url: this.#url, house: this.#house, seat, act };
    return startChild<Result>("peers/side-by-side-worker.ts", task);
  }

  run<Result extends SideResult>(act: Act, seat?: number): Promise<Result> {
    return this.start<Result>(act, seat).result;
  }

  /** Starts them all, waits until all of them are set up, and lets them go at once. */
  async together<Result extends SideResult>(acts: readonly Act[]): Promise<Result[]> {
    const children = acts.map((act, seat) => this.start<Result>(act, seat));
    for (const child of children) await child.ready;
    for (const child of children) child.go();
    return Promise.all(children.map((child) => child.result));
  }

  async query<Row>(text: string): Promise<Row[]> {
    const client = new pg.Client(this.#url);
    await client.connect();
    try {
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end();
    }
  }

  async close(): Promise<void> {
    for (const home of this.#homes) await home.remove();
  }

  /** Two daemons, so that whoever asks at the same time does not ask the same process. */
  async #openHouse(): Promise<House> {
    const start = async () => {
      const home = new Home(`store: ${this.#url}?schema=guildhall\n`);
      this.#homes.push(home);
      return home.start();
    };
    const [first, second] = [await start(), await start()];
    const post = async (path: string, body: unknown): Promise<Record<string, string>> => {
      const response = await first.fetch(path, { method: "POST", body: JSON.stringify(body) });
      if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as Record<string, string>;
    };
    for (const pool of POOLS) await post("/api/pools", pool);
    const tokens: Record<string, string> = {};
    const scopes = [
      ...IDENTITIES.map((name) => [name, `guest:${name}`] as const),
      ["channel", "channel:bench"] as const,
      ["operator", "operator"] as const,
    ];
    for (const [name, scope] of scopes) tokens[name] = (await post("/api/tokens", { scope })).token as string;
    return { nodes: [first.url, second.url], tokens };
  }
}
