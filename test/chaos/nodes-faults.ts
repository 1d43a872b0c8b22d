import { setTimeout as sleep } from "node:timers/promises";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import type { Cluster, ClusterNode } from "./nodes-cluster.ts";
import type { Fault } from "./nodes-facts.ts";

export type FaultKind = Fault["kind"];
export const FAULT_KINDS = ["kill", "pause", "partition", "server crash"] as const satisfies readonly FaultKind[];

/** Lines at which a node may die under this load, on every way that leads through two of them. */
const POINTS: readonly CrashPoint[] = [
  "message.received",
  "message.admitted",
  "queue.claim.done",
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "task.opened",
  "turn.parked",
  "task.closed",
  "turn.answered",
  "queue.settle.before",
  "turn.committed",
  "reply.intended",
  "reply.delivered",
  "reply.recorded",
  "workflow.started",
  "step.settled",
  "store.commit.before",
  "store.commit.after",
];

/** Two of three at most, so that something goes on. */
const AT_ONCE = 2;
const GAP_MS = 1_200;
/** A point that is not reached in this time is not waited for any longer. */
const POINT_MS = 3_000;

export interface FaultOptions {
  readonly leaseMs: number;
  readonly random: () => number;
  /** Called as each is over. */
  readonly done: (fault: Fault) => void;
}

/** Does one thing after another to the nodes and their database, some at the same time. */
export class Faults {
  readonly all: Fault[] = [];
  /** How often it died at each line. */
  readonly hits: Record<string, number> = {};
  readonly #cluster: Cluster;
  readonly #options: FaultOptions;
  readonly #under = new Map<ClusterNode, Promise<void>>();

  constructor(cluster: Cluster, options: FaultOptions) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /** Until all of them have happened and every node is up again. */
  async inflict(kinds: readonly FaultKind[]): Promise<void> {
    const { random } = this.#options;
    for (const kind of kinds) {
      await sleep(random() * GAP_MS);
      if (kind === "server crash") {
        await this.#crashServer();
        continue;
      }
      while (this.#under.size >= AT_ONCE) await Promise.race(this.#under.values());
      const free = this.#cluster.nodes.filter((node) => !this.#under.has(node));
      const node = free[Math.floor(random() * free.length)] as ClusterNode;
      this.#under.set(
        node,
        this.#strike(kind, node).finally(() => this.#under.delete(node)),
      );
    }
    await Promise.all(this.#under.values());
  }

  async #strike(kind: Exclude<FaultKind, "server crash">, node: ClusterNode): Promise<void> {
    const { random, leaseMs } = this.#options;
    const pastLease = leaseMs * (1.2 + random());
    if (kind === "kill") return this.#kill(node);
    const fault = this.#begin(kind, node.name, `${Math.round(pastLease)} ms`);
    await (kind === "pause" ? node.pause(pastLease) : node.partition(pastLease));
    this.#end(fault);
  }

  /** Sometimes it is back before anybody has missed it, sometimes after others have taken over what it had. */
  async #kill(node: ClusterNode): Promise<void> {
    const { random, leaseMs } = this.#options;
    const point = random() < 0.5 ? (POINTS[Math.floor(random() * POINTS.length)] as string) : null;
    const hit = 1 + Math.floor(random() * 3);
    const away = random() * 2 * leaseMs;
    if (point) {
      node.life.dieAt(point, hit);
      await Promise.race([node.life.ended, sleep(POINT_MS)]);
    }
    const how = point && node.life.dead ? point : "at random";
    this.hits[how] = (this.hits[how] ?? 0) + 1;
    const fault = this.#begin("kill", node.name, how);
    await node.kill();
    await sleep(away);
    await node.begin();
    this.#end(fault);
  }

  async #crashServer(): Promise<void> {
    const { random } = this.#options;
    const how = random() < 0.5 ? "immediate" : "kill";
    const fault = this.#begin("server crash", null, how);
    await this.#cluster.crashServer(how, random() * 1_000);
    this.#end(fault);
  }

  #begin(kind: FaultKind, node: string | null, how: string): Fault {
    const fault: Fault = { kind, node, how, began: performance.now(), ended: Number.POSITIVE_INFINITY };
    this.all.push(fault);
    return fault;
  }

  #end(fault: Fault): void {
    fault.ended = performance.now();
    this.#options.done(fault);
  }
}
