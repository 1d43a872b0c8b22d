import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** The table of the jobs, on a connection of its own, treated the same for both. */
export class JobTable {
  readonly #client: pg.Client;
  readonly #name: string;

  private constructor(client: pg.Client, name: string) {
    this.#client = client;
    this.#name = name;
  }

  static async open(url: string, name: string, jobs: number): Promise<JobTable> {
    const client = new pg.Client(url);
    await client.connect();
    const { rows } = await client.query(`select count(*)::int as count from ${name}`);
    if (rows[0].count !== jobs) throw new Error(`${rows[0].count} jobs in ${name}, not ${jobs}`);
    await client.query(`vacuum analyze ${name}`);
    await client.query("checkpoint");
    return new JobTable(client, name);
  }

  async untilEmpty(): Promise<void> {
    while ((await this.#client.query(`select 1 from ${this.#name} limit 1`)).rows.length > 0) await sleep(1);
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
