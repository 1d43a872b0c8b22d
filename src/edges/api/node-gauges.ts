import { viewNodes } from "../../acts/view-nodes.ts";
import { NODE_STATES, type NodeList, type NodeView, type WaitingWork } from "../../contract/nodes.ts";
import type { Store } from "../../store/store.ts";
import type { Look } from "./looked-gauges.ts";
import type { Gauge, Sample } from "./metrics.ts";

/**
 * All nodes and all work, for whoever measures. Every node tells the same of them: over several nodes the largest counts, never the sum. Only
 * takeovers are this node's own.
 */
export function nodeGauges(store: Store, here: string, takeovers: () => number): Look {
  return async () => {
    const seen = await store.snapshot((reads) => viewNodes(reads, here));
    return [
      ...gaugesOf(seen),
      {
        name: "guildhall_takeovers_total",
        help: "Claims this node has taken from owners that were not heard of any more.",
        type: "counter",
        read: takeovers,
      },
    ];
  };
}

function gaugesOf({ nodes, waiting, orphaned, unsealed }: NodeList): Gauge[] {
  const gauge = (name: string, help: string, found: number | readonly Sample[]): Gauge => ({
    name,
    help,
    type: "gauge",
    read: () => found,
  });
  const alive = nodes.filter(({ state }) => state !== "gone");
  const ofNode = (of: (node: NodeView) => number): Sample[] => alive.map((node) => ({ labels: { node: node.name }, value: of(node) }));
  const ofKind = (of: (work: WaitingWork) => number): Sample[] => waiting.map((work) => ({ labels: { kind: work.kind }, value: of(work) }));
  return [
    gauge(
      "guildhall_nodes",
      "Nodes by state; one that is gone is counted for a day.",
      NODE_STATES.map((state) => ({ labels: { state }, value: nodes.filter((node) => node.state === state).length })),
    ),
    gauge(
      "guildhall_node_silent_seconds",
      "Since a node was heard of.",
      ofNode(({ lagMs }) => lagMs / 1_000),
    ),
    gauge(
      "guildhall_node_work",
      "Work that a node holds, by kind.",
      alive.flatMap(({ name: node, turns, deliveries, remote }) =>
        Object.entries({ turn: turns, delivery: deliveries, remote }).map(([kind, value]) => ({ labels: { node, kind }, value })),
      ),
    ),
    gauge(
      "guildhall_node_accounts",
      "Platform accounts that a node is connected to.",
      ofNode(({ accounts }) => accounts.length),
    ),
    gauge(
      "guildhall_work_waiting",
      "Work that could be claimed now.",
      ofKind(({ ready }) => ready),
    ),
    gauge(
      "guildhall_work_waiting_seconds",
      "How long the first of it has been waiting.",
      ofKind(({ oldestMs }) => (oldestMs ?? 0) / 1_000),
    ),
    gauge(
      "guildhall_work_dead",
      "Work whose attempts are used up.",
      ofKind(({ dead }) => dead),
    ),
    gauge(
      "guildhall_work_orphaned",
      "Work held by nodes that are gone.",
      orphaned.reduce((sum, { count }) => sum + count, 0),
    ),
    gauge("guildhall_ledger_unsealed", "Events that no seal covers yet.", unsealed),
  ];
}
