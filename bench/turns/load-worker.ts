import { get } from "node:http";
import { serve, whenTold } from "../child.ts";
import { HttpClient } from "../coordination/http-client.ts";
import { quantile } from "../spread.ts";

export interface LoadTask {
  readonly url: string;
  readonly token: string;
  /** Conversations of the agent `main`, each of which waits for its reply before it says more. */
  readonly sessions: number;
  /** Beside them, so many for each of the other agents. */
  readonly agents: number;
  readonly sessionsPerAgent: number;
  /** What was said by then is not measured: a daemon runs for weeks, and its first minute is not what it does. */
  readonly warmUpMs: number;
  readonly ms: number;
}

export interface LoadResult {
  readonly turns: number;
  readonly perSecond: number;
  /** From sending a message to seeing on the event stream that its reply is committed, ms. */
  readonly p50: number;
  readonly p99: number;
  /** Turns of each of the other agents, and of `main`. */
  readonly byAgent: readonly number[];
  readonly main: number;
}

/** Messages of a conversation before the next one begins: what was said before is told to the model, and read for that. */
const CONVERSATION = 20;

/** Tells of turns that have ended, by the events of the daemon. */
class Ended {
  readonly #waiting = new Map<string, () => void>();
  readonly #early = new Set<string>();
  #rest = "";
  failed = 0;

  open(url: string, token: string): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const request = get(`${url}/api/events?last=0`, { headers: { authorization: `Bearer ${token}` } }, (response) => {
        response.setEncoding("utf8");
        response.on("data", (text: string) => this.#take(text));
        response.on("error", () => {});
        resolve(() => request.destroy());
      });
      request.on("error", reject);
    });
  }

  of(run: string): Promise<void> {
    if (this.#early.delete(run)) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.set(run, resolve));
  }

  #take(text: string): void {
    const parts = (this.#rest + text).split("\n\n");
    this.#rest = parts.pop() as string;
    for (const part of parts) {
      const event = /^event: (turn\.completed|turn\.failed)$/m.exec(part);
      if (!event) continue;
      if (event[1] === "turn.failed") this.failed++;
      const run = /"subject":\["run","([0-9a-z]+)"\]/.exec(part)?.[1] as string;
      const done = this.#waiting.get(run);
      this.#waiting.delete(run);
      if (done) done();
      else this.#early.add(run);
    }
  }
}

await serve<LoadTask, LoadResult>(async (task) => {
  const others = Array.from({ length: task.agents }, (_, index) => `a${index}`);
  const client = new HttpClient(task.url, task.sessions + task.agents * task.sessionsPerAgent);
  const ended = new Ended();
  const close = await ended.open(task.url, task.token);
  const latencies: number[] = [];
  const counts = new Map<string, number>();
  let messages = 0;
  const talk = async (agent: string, name: string, end: number): Promise<void> => {
    let said = 0;
    while (performance.now() < end) {
      const number = messages++;
      const peer = `${name}-${Math.floor(said++ / CONVERSATION)}`;
      const sent = performance.now();
      const message = { id: `${process.pid}-${number}`, platform: "bench", chat: peer, peer, chat_type: "dm", agent, text: "What is it?" };
      const post = () => client.send<{ runId: string }>("POST", "/api/messages", task.token, message);
      // A connection that was idle may be closed by the daemon just when it is used again; the same message runs once.
      const { status, body } = await post().catch(post);
      if (status !== 202) throw new Error(`${status} ${JSON.stringify(body)}`);
      await ended.of(body.runId);
      const now = performance.now();
      if (now > end) continue;
      counts.set(agent, (counts.get(agent) ?? 0) + 1);
      latencies.push(now - sent);
    }
  };
  const talkFor = async (ms: number, part: string): Promise<void> => {
    const end = performance.now() + ms;
    const name = (index: number): string => `${process.pid}-${part}-${index}`;
    const all = Array.from({ length: task.sessions }, (_, index) => talk("main", name(index), end));
    for (const agent of others) for (let index = 0; index < task.sessionsPerAgent; index++) all.push(talk(agent, name(index), end));
    await Promise.all(all);
  };
  await talkFor(task.warmUpMs, "w");
  await whenTold();
  counts.clear();
  latencies.length = 0;
  await talkFor(task.ms, "m");
  close();
  client.close();
  if (ended.failed > 0) throw new Error(`${ended.failed} turns failed`);
  latencies.sort((a, b) => a - b);
  const turns = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return {
    turns,
    perSecond: turns / (task.ms / 1_000),
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    byAgent: others.map((agent) => counts.get(agent) ?? 0),
    main: counts.get("main") ?? 0,
  };
});
