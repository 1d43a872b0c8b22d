import type { LedgerEvent } from "../../src/contract/events.ts";
import type { WorkflowRun } from "../../src/contract/workflows.ts";
import type { TelegramStandIn } from "../platforms/telegram.ts";
import type { Said } from "./channels-check.ts";
import type { Cluster } from "./nodes-cluster.ts";
import type { Load, Operation } from "./nodes-load.ts";

/** Something that was done to a node; to the database: `node` null. Times are of this process. */
export interface Fault {
  readonly kind: "kill" | "pause" | "partition" | "server crash";
  readonly node: string | null;
  readonly how: string;
  readonly began: number;
  ended: number;
}

export interface RunFact extends Record<string, unknown> {
  readonly id: string;
  readonly agent: string | null;
  readonly session: string | null;
  readonly status: string;
  readonly input: string;
  readonly address: string;
  readonly decision: string;
  readonly error: string | null;
  readonly reply: string | null;
}

export interface TaskFact extends Record<string, unknown> {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly run: string | null;
  readonly parent_run: string | null;
  readonly root: string;
  readonly depth: number;
}

/** Everything that is known when a round is over: from the clients, the database, the ledger, the platform, and the world outside. */
export interface Facts {
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  readonly said: readonly Said[];
  readonly runs: readonly RunFact[];
  readonly tasks: readonly TaskFact[];
  readonly events: readonly LedgerEvent[];
  readonly transcript: readonly { readonly session: string; readonly role: string; readonly body: string }[];
  /** Tokens that were recorded, by the run of the message that it all goes back to. */
  readonly spent: ReadonlyMap<string, number>;
  readonly workflows: ReadonlyMap<string, WorkflowRun>;
  /** What each node says of where messages of these addresses go. */
  readonly routes: readonly string[];
  readonly work: readonly { readonly kind: string; readonly state: string }[];
}

/** Where a message would go is asked of every node. */
const ADDRESSES = [
  { platform: "telegram", chat: "-1001", topic: "12", chat_type: "group", peer: "7" },
  { platform: "telegram", chat: "-1001", topic: "11", chat_type: "group", peer: "7" },
  { platform: "telegram", chat: "1", chat_type: "dm", peer: "1" },
];

export async function gatherFacts(cluster: Cluster, load: Load, faults: readonly Fault[]): Promise<Facts> {
  const [first] = cluster.nodes;
  if (!first) throw new Error("there are no nodes");
  const workflows = new Map<string, WorkflowRun>();
  for (const { kind, id, result } of load.operations)
    if (kind === "workflow" && result) workflows.set(id, await first.call<WorkflowRun>("GET", `/api/workflows/runs/${result}`));
  const spent = await cluster.look<{ root: string; tokens: string }>(
    "select coalesce(root_id, run_id) as root, sum(input_tokens + output_tokens) as tokens from model_calls group by 1",
  );
  const routes = await Promise.all(
    cluster.nodes.map(async (node) =>
      JSON.stringify(await Promise.all(ADDRESSES.map((address) => node.call("GET", `/api/route/explain?${new URLSearchParams(address)}`)))),
    ),
  );
  return {
    operations: load.operations,
    faults,
    said: load.said,
    runs: await cluster.look<RunFact>(
      "select id, agent, session_key as session, status, input, address, decision, error, reply from runs order by id",
    ),
    tasks: await cluster.look<TaskFact>(
      "select id, kind, status, run_id as run, parent_run, root_id as root, depth from tasks order by id",
    ),
    events: await first.life.events(),
    transcript: await cluster.look("select session_key as session, role, body from transcript order by session_key, position"),
    spent: new Map(spent.map(({ root, tokens }) => [root, Number(tokens)])),
    workflows,
    routes,
    work: await cluster.look("select kind, state from work"),
  };
}

/** What still keeps it from being over; null: nothing. */
export async function whatIsOpen(cluster: Cluster, load: Load, telegram: TelegramStandIn): Promise<string | null> {
  const [row] = await cluster.look<{ runs: string; tasks: string; work: string; outbox: string; heard: string }>(`select
    (select count(*) from runs where ended_at is null) as runs, (select count(*) from tasks where ended_at is null) as tasks,
    (select count(*) from work where state <> 'dead') as work, (select count(*) from outbox where state in ('draft', 'pending')) as outbox,
    (select count(*) from runs where input like '%say w%') as heard`);
  if (!row) return "the database says nothing";
  const waits = load.said.length - Number(row.heard);
  const open = Object.entries({ ...row, heard: 0, unheard: waits, unconfirmed: telegram.updates.unconfirmed });
  const left = open.filter(([, count]) => Number(count) > 0);
  return left.length === 0 ? null : left.map(([what, count]) => `${count} ${what}`).join(", ");
}
