import type { NodeList, NodeView, WaitingWork } from "../contract/nodes.ts";
import { channelName } from "./channel-words.ts";
import { span, table } from "./spans.ts";
import { bold, harmless, oneLine } from "./terminal.ts";

const HEAD = [
  "node",
  "state",
  "up",
  "heard",
  "version",
  "address",
  "config",
  "turns",
  "deliveries",
  "oldest",
  "accounts",
  "labels",
  "problem",
];
const LIST_WIDTH = 60;
/** The last of a row: what to do about it stands at its end. */
const PROBLEM_WIDTH = 300;

/** `fitted`: makes a row fit where it is printed. */
export function nodesInWords(seen: NodeList, fitted: (line: string) => string): string {
  const [head = "", ...rows] = table([HEAD, ...seen.nodes.map((node) => rowOf(node, seen))]).split("\n");
  return [[bold(fitted(head)), ...rows.map(fitted)].join("\n"), ...notes(seen)].join("\n\n");
}

function rowOf(node: NodeView, { now, here, revision }: NodeList): string[] {
  const { name, state, version, url, labels, startedAt, lagMs, turns, deliveries, remote, oldestSince, accounts, taken, problem } = node;
  const isGone = state === "gone";
  return [
    `${harmless(name)}${node.id === here ? " *" : ""}`,
    isGone ? `gone for ${span(lagMs)}` : state,
    isGone ? "" : span(now - startedAt),
    isGone ? "" : `${span(lagMs)} ago`,
    harmless(version),
    harmless(url),
    node.revision === revision ? String(revision) : `${node.revision} of ${revision}`,
    remote === 0 ? String(turns) : `${turns} and ${remote} elsewhere`,
    String(deliveries),
    oldestSince === null ? "" : span(Math.max(0, now - oldestSince)),
    oneLine(accounts.map(channelName).join(" "), LIST_WIDTH),
    oneLine(labels.join(" "), LIST_WIDTH),
    [problem === null ? "" : oneLine(problem, PROBLEM_WIDTH), taken === 0 ? "" : `${taken} taken over by others`]
      .filter(Boolean)
      .join("; "),
  ];
}

function notes({ now, waiting, orphaned, unsealed, missing }: NodeList): string[] {
  const left = orphaned.map(({ node, name, count, until }) => {
    const when = until > now ? `in ${span(until - now)} at the latest` : "at the next look";
    return `${count} of ${harmless(name ?? `node ${node}`)}, which is gone: taken over ${when}`;
  });
  const without = missing.map(({ problem, agents }) => `${oneLine(agents.join(" "), LIST_WIDTH)}: ${harmless(problem)}`);
  const lines = [...waiting.map(waitingInWords), ...left, ...without, ...(unsealed === 0 ? [] : [`${unsealed} events are not sealed yet`])];
  return [lines.length === 0 ? "nothing waits" : lines.join("\n")];
}

function waitingInWords({ kind, ready, queued, parked, dead, oldestMs }: WaitingWork): string {
  const parts = [
    `${ready} waiting${oldestMs === null ? "" : ` for ${span(oldestMs)}`}`,
    ...(queued === 0 ? [] : [`${queued} behind others`]),
    ...(parked === 0 ? [] : [`${parked} for their time or somebody's word`]),
    ...(dead === 0 ? [] : [`${dead} dead`]),
  ];
  return `${harmless(kind)}: ${parts.join(", ")}`;
}
