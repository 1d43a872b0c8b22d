import { setTimeout as sleep } from "node:timers/promises";
import { isWorkflowOver, type WorkflowRun } from "../../src/contract/workflows.ts";
import { telegramStandIn } from "../platforms/telegram.ts";
import { LEASE_MS } from "./nodes-chaos.ts";
import { Cluster, type ClusterServer, crashableServer } from "./nodes-cluster.ts";
import { configFor, environmentFor, play, workflowOf } from "./nodes-world.ts";
import { Witness } from "./turns-witness.ts";
import { checkWorkflows } from "./workflows-check.ts";

export interface FanOutReport {
  readonly branches: number;
  /** Branches that each node asked the model for; one that was killed has begun some that another has finished. */
  readonly ran: Record<string, number>;
  readonly killed: string;
  readonly counts: Record<string, number>;
  readonly problems: string[];
  readonly seconds: number;
}

/** Few enough at once that all three nodes are needed. */
const TURNS = 6;
const THINK_MS = 300;
const PATIENCE_MS = 120_000;

/** One workflow with so many branches over three nodes; the node that was asked for it is killed when a third of them are done. */
export async function fanOut(branches: number, given?: ClusterServer): Promise<FanOutReport> {
  const own = given ? null : await crashableServer();
  const [telegram, witness] = await Promise.all([telegramStandIn(), Witness.start(play)]);
  witness.thinkMs = () => THINK_MS;
  let cluster: Cluster | undefined;
  try {
    cluster = await Cluster.start(given ?? (own as ClusterServer), {
      config: { ...configFor(telegram), limits: { turns: TURNS } },
      ...{ witness: witness.url, environment: environmentFor(telegram), leaseMs: LEASE_MS },
    });
    const [victim, other] = cluster.nodes;
    if (!victim || !other) throw new Error("there are no nodes");
    const began = performance.now();
    const body = { workflow: workflowOf(branches), input: { name: "wide" }, idempotency_key: "wide" };
    const { id } = await victim.call<{ id: string }>("POST", "/api/workflows/runs", body);
    const read = (): Promise<WorkflowRun> => other.call<WorkflowRun>("GET", `/api/workflows/runs/${id}`);
    const done = ({ steps }: WorkflowRun): number =>
      steps.filter((step) => step.id.startsWith("work[") && step.status === "completed").length;
    await until(read, (run) => done(run) >= branches / 3);
    await victim.kill();
    const run = await until(read, ({ status }) => isWorkflowOver(status));
    const seconds = (performance.now() - began) / 1_000;
    const { problems, counts } = checkWorkflows(new Map([["wide", run]]), witness, await other.life.events(), branches);
    const items = witness.asked.filter(({ message, round }) => round === 0 && /chaos wide item/.test(message));
    const ran = Object.fromEntries(cluster.nodes.map(({ name }) => [name, items.filter(({ node }) => node === name).length]));
    const idle = Object.entries(ran).filter(([, count]) => count === 0);
    problems.push(...idle.map(([name]) => `${name} has run nothing: ${JSON.stringify(ran)}`));
    return { branches, ran, killed: victim.name, counts, problems, seconds };
  } finally {
    await cluster?.remove();
    witness.close();
    await telegram.close();
    await own?.remove();
  }
}

async function until(read: () => Promise<WorkflowRun>, isSo: (run: WorkflowRun) => boolean): Promise<WorkflowRun> {
  const late = Date.now() + PATIENCE_MS;
  for (;;) {
    const run = await read();
    if (isSo(run)) return run;
    if (Date.now() > late)
      throw new Error(`the workflow is ${run.status} after ${PATIENCE_MS / 1_000} s: ${JSON.stringify(run.steps).slice(0, 2_000)}`);
    await sleep(50);
  }
}
