import { setTimeout as sleep } from "node:timers/promises";
import { type TelegramStandIn, telegramStandIn } from "../platforms/telegram.ts";
import { Cluster, type ClusterNode, crashableServer } from "./nodes-cluster.ts";
import { configFor, environmentFor, play } from "./nodes-world.ts";
import { Witness } from "./turns-witness.ts";

export interface TakeoverReport {
  /** From the death of a node until another asks the model for the turn that it held, and until another asks the platform for news; ms. */
  readonly turns: readonly number[];
  readonly polls: readonly number[];
  readonly problems: string[];
}

/** What is promised for a lease of 15 s. */
export const TAKEOVER_MS = 20_000;
const PATIENCE_MS = 60_000;

/** Kills the node that holds a running turn and the platform's account, at the lease that a daemon has by itself, and looks who comes. */
export async function takeovers(times: number, progress: (line: string) => void, leaseMs?: number): Promise<TakeoverReport> {
  const server = await crashableServer();
  const [telegram, witness] = await Promise.all([telegramStandIn(), Witness.start(play)]);
  // Whoever is asked first thinks until it is killed.
  witness.thinkMs = ({ message }, asked) => (message.includes("slowly") && asked === 1 ? 10 * PATIENCE_MS : 0);
  const turns: number[] = [];
  const polls: number[] = [];
  const problems: string[] = [];
  let cluster: Cluster | undefined;
  try {
    cluster = await Cluster.start(server, {
      ...{ config: configFor(telegram), witness: witness.url, environment: environmentFor(telegram) },
      ...(leaseMs === undefined ? {} : { leaseMs }),
    });
    for (let time = 0; time < times; time++) {
      const victim = await holderOf(cluster);
      const text = `go g${time} of 0 slowly`;
      await victim.call("POST", "/api/messages", { ...message(time), text });
      const first = await until(`${victim.name} asks`, () => witness.asked.find((asked) => asked.message === text));
      if (first.node !== victim.name) problems.push(`${first.node} runs what ${victim.name} was given`);
      // Some time into the lease, which was renewed at any moment of it.
      await sleep(Math.random() * 2_000);
      await victim.kill();
      const killed = performance.now();
      await telegram.say(`say w${time}`, { peer: "1" });
      const [turn, poll] = await Promise.all([
        until("another takes the turn up", () => witness.asked.find((asked) => asked.message === text && asked.began > killed)?.began),
        until("another polls", () => polledAfter(telegram, killed)),
      ]);
      turns.push(turn - killed);
      polls.push(poll - killed);
      progress(`takeover ${time + 1} of ${times}: the turn after ${seconds(turn - killed)}, the account after ${seconds(poll - killed)}`);
      await until("the answer", () => telegram.accepted.find((shown) => shown.text.includes(`w${time} is heard`)));
      await victim.begin();
    }
    problems.push(...telegram.complaints.map((words) => `L7: the platform complains: ${words}`));
    return { turns, polls, problems };
  } finally {
    await cluster?.remove();
    witness.close();
    await telegram.close();
    await server.remove();
  }
}

const message = (time: number): object => ({ id: `g${time}`, platform: "test", chat: "c", peer: "c", chat_type: "dm", agent: "main" });

function polledAfter(telegram: TelegramStandIn, moment: number): number | undefined {
  return telegram.updates.polledAt > moment ? telegram.updates.polledAt : undefined;
}

/** The node that is connected to the platform. */
async function holderOf(cluster: Cluster): Promise<ClusterNode> {
  return until("a node holds the account", async () => {
    const rows = await cluster.look<{ name: string }>(`select nodes.name from leases join nodes on nodes.id = leases.holder
      where leases.name like '%telegram%' and leases.expires_at > now_ms()`);
    return cluster.nodes.find(({ name, doing }) => doing === "up" && rows.some((row) => row.name === name));
  });
}

async function until<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const late = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > late) throw new Error(`not within ${PATIENCE_MS / 1_000} s: ${what}`);
    await sleep(20);
  }
}

/** `share` of them are no longer than this. */
export function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
