import { quantile } from "../spread.ts";
import { HttpClient } from "./http-client.ts";

export interface LoadTask {
  readonly url: string;
  readonly operator: string;
  readonly identities: number;
  /** Claims held and mails under way, each. */
  readonly inFlight: number;
  readonly connections: number;
  /** How often everything in flight is renewed or replaced. */
  readonly turns: number;
}

export interface Latency {
  readonly what: string;
  readonly requests: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

export interface LoadResult {
  readonly latencies: readonly Latency[];
  /** When each phase ended, so that the samples of memory can be told apart. */
  readonly marks: Readonly<Record<string, number>>;
}

const LONG_MS = 3_600_000;
const RECEIVE = 50;

interface Held {
  readonly token: string;
  readonly resource: string;
  fence: number;
}

interface Letter {
  readonly id: string;
  readonly fence: number;
  readonly token: string;
}

export class Load {
  readonly #task: LoadTask;
  readonly #client: HttpClient;
  readonly #latencies: Latency[] = [];
  readonly #marks: Record<string, number> = {};
  #tokens: readonly string[] = [];

  constructor(task: LoadTask) {
    this.#task = task;
    this.#client = new HttpClient(task.url, task.connections);
  }

  close(): void {
    this.#client.close();
  }

  async run(): Promise<LoadResult> {
    const { identities, inFlight, turns } = this.#task;
    this.#tokens = await Promise.all(Array.from({ length: identities }, (_, index) => this.#makeToken(index)));
    const claims = await this.#timed("claim taken", range(inFlight), (index) => this.#take(index));
    await this.#timed("mail sent", range(inFlight), (index) => this.#send(index));
    let letters = (
      await this.#timed("mail received, 50 at a time", range(inFlight / RECEIVE), (index) => this.#receive(index % identities))
    ).flat();
    if (letters.length !== inFlight) throw new Error(`${letters.length} mails received, not ${inFlight}`);
    this.#marks.full = Date.now();
    const renewed: Latency[] = [];
    for (let turn = 0; turn < turns; turn++) {
      await this.#timed("claim renewed", claims, (held) => this.#renew(held), renewed);
      await this.#timed("claim refused: held by another", range(inFlight / 10), (index) => this.#refused(index * 10), renewed);
      await this.#timed("mail acked", letters, (letter) => this.#ack(letter), renewed);
      await this.#timed("mail sent, again", range(inFlight), (index) => this.#send(index), renewed);
      letters = (
        await this.#timed("mail received, again", range(inFlight / RECEIVE), (index) => this.#receive(index % identities), renewed)
      ).flat();
      if (letters.length !== inFlight) throw new Error(`${letters.length} mails received in turn ${turn}, not ${inFlight}`);
      this.#marks[`turn ${turn + 1}`] = Date.now();
    }
    this.#latencies.push(...merged(renewed));
    await this.#timed("claim released", claims, (held) => this.#release(held));
    this.#marks.released = Date.now();
    return { latencies: this.#latencies, marks: this.#marks };
  }

  /** Closed loops, as many as there are connections. */
  async #timed<Item, Result>(
    what: string,
    items: readonly Item[],
    one: (item: Item) => Promise<Result>,
    into: Latency[] = this.#latencies,
  ): Promise<Result[]> {
    const results: Result[] = [];
    const took = new Float64Array(items.length);
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < items.length) {
        const index = next++;
        const asked = performance.now();
        results[index] = await one(items[index] as Item);
        took[index] = performance.now() - asked;
      }
    };
    const started = performance.now();
    await Promise.all(Array.from({ length: this.#task.connections }, work));
    const seconds = (performance.now() - started) / 1_000;
    took.sort();
    into.push({ what, requests: items.length, perSecond: items.length / seconds, p50: quantile(took, 0.5), p99: quantile(took, 0.99) });
    return results;
  }

  async #makeToken(index: number): Promise<string> {
    return (await this.#expect<{ token: string }>(201, "/api/tokens", this.#task.operator, { scope: `guest:holder-${index}` })).token;
  }

  async #take(index: number): Promise<Held> {
    const token = this.#tokenOf(index);
    const resource = resourceOf(index);
    const { fence } = await this.#expect<{ fence: number }>(201, "/api/claims", token, { resource, ttl_ms: LONG_MS });
    return { token, resource, fence };
  }

  async #renew({ token, resource, fence }: Held): Promise<void> {
    await this.#expect(200, "/api/claims/renew", token, { resource, fence, ttl_ms: LONG_MS });
  }

  async #refused(index: number): Promise<void> {
    await this.#expect(409, "/api/claims", this.#tokenOf(index + 1), { resource: resourceOf(index), ttl_ms: LONG_MS });
  }

  async #release({ token, resource, fence }: Held): Promise<void> {
    await this.#expect(200, "/api/claims/release", token, { resource, fence });
  }

  /** To the next identity and the one after it, in turn: no sender fills a mailbox. In one conversation they would wait for each other. */
  async #send(index: number): Promise<void> {
    const { identities } = this.#task;
    const to = `holder-${((index % identities) + 1 + (Math.floor(index / identities) % 2)) % identities}`;
    await this.#expect(201, "/api/mail", this.#tokenOf(index), {
      to,
      type: "bench",
      conversation: `c-${index}`,
      content: { text: "x".repeat(100) },
    });
  }

  async #receive(identity: number): Promise<Letter[]> {
    const token = this.#tokens[identity] as string;
    const { mail } = await this.#expect<{ mail: Letter[] }>(200, "/api/mail/receive", token, { max: RECEIVE, visibility_ms: LONG_MS });
    return mail.map(({ id, fence }) => ({ id, fence, token }));
  }

  async #ack({ id, fence, token }: Letter): Promise<void> {
    await this.#expect(200, `/api/mail/${id}/ack`, token, { fence });
  }

  #tokenOf(index: number): string {
    return this.#tokens[index % this.#task.identities] as string;
  }

  async #expect<Body>(status: number, path: string, token: string, content: unknown): Promise<Body> {
    const answer = await this.#client.send<Body>("POST", path, token, content);
    if (answer.status !== status) throw new Error(`${path}: ${answer.status}, not ${status}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function resourceOf(index: number): string {
  return `repo/folder-${index % 100}/file-${index}.ts`;
}

/** Of several turns: the median turn's rate and quantiles. */
function merged(latencies: readonly Latency[]): Latency[] {
  return [...Map.groupBy(latencies, ({ what }) => what)].map(([what, all]) => {
    const median = (pick: (latency: Latency) => number): number =>
      quantile(
        all.map(pick).sort((a, b) => a - b),
        0.5,
      );
    return {
      what,
      requests: all.reduce((sum, { requests }) => sum + requests, 0),
      perSecond: median((one) => one.perSecond),
      p50: median((one) => one.p50),
      p99: median((one) => one.p99),
    };
  });
}
