import { viewNodes } from "../../acts/view-nodes.ts";
import type { NodeList, NodeView } from "../../contract/nodes.ts";
import { absenceOf, missingNodes } from "../../deciders/placement/placement.ts";
import { touchesFiles } from "../../deciders/policy/touches-files.ts";
import { asFailure } from "../../kernel/failure.ts";
import type { Agent } from "../../records/agents/agent.ts";
import { revisionOf } from "../../records/agents/revision.ts";
import { readPlaces } from "../../records/nodes/agent-homes.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { glanceInto, inspectStore } from "../../store/inspect-store.ts";
import { readVersion } from "../version.ts";
import { type Finding, ok, warning } from "./check.ts";

/** Nothing that we do depends on the clocks of machines; whoever reads logs of several beside each other does. */
const SKEW_MS = 1_000;
const SECOND_MS = 1_000;
const TOLD = 10;

/** The other nodes on the same database: who is there, which versions, what those that are gone have left, and whose clock is wrong. */
export async function nodeChecks(settings: Settings): Promise<Finding[]> {
  const { storeLocation } = settings;
  // A file has one node.
  if (storeLocation.startsWith("sqlite:")) return [];
  try {
    const { exists, schema, newest } = await inspectStore(storeLocation);
    if (!exists || schema < newest) return [];
    return await glanceInto(storeLocation, async (reads) => {
      const asked = Date.now();
      const clock = await reads.get<{ now: number }>`select now_ms() as now`;
      const skew = (clock?.now ?? asked) - (asked + Date.now()) / 2;
      return [
        ...nodeFindings(await viewNodes(reads, ""), readVersion()),
        ...missingFindings(settings, await readPlaces(reads)),
        clockFinding(skew),
      ];
    });
  } catch (error) {
    // What is wrong with the store is told by its own check.
    return [warning("nodes", `cannot be looked at: ${asFailure(error).message}`, "See the store.")];
  }
}

/** `own`: the version that would be started here. */
export function nodeFindings({ nodes, orphaned, revision, now }: NodeList, own: string): Finding[] {
  const alive = nodes.filter(({ state }) => state !== "gone");
  const versions = [...new Set([...alive.map(({ version }) => version), own])].toSorted();
  const left = orphaned.reduce((sum, { count }) => sum + count, 0);
  const until = Math.max(0, ...orphaned.map((each) => each.until - now));
  return [
    ok("nodes", alive.length === 0 ? "none is running" : `${alive.length} running: ${alive.map(inWords).join(", ")}`),
    ...(alive.length > 0 && versions.length > 1
      ? [
          warning(
            "versions.nodes",
            `versions side by side: ${versions.join(", ")}`,
            "Fine while you upgrade; bring every node to the same one.",
          ),
        ]
      : []),
    ...nodes
      .filter(({ state }) => state === "gone")
      .map(({ name, lagMs, taken }) =>
        warning(
          `node.${name}`,
          `not heard of for ${Math.round(lagMs / SECOND_MS)} s${taken === 0 ? "" : `; others have taken over ${taken} of what it held`}`,
          "Start it again, or leave it: it is forgotten after a day.",
        ),
      ),
    ...alive
      .filter((node) => node.revision !== revision || node.problem !== null)
      .map(({ name, revision: its, problem }) =>
        warning(`node.${name}`, `runs config ${its}, the newest is ${revision}: ${problem ?? "it has not followed yet"}`, "See its log."),
      ),
    ...(left === 0
      ? []
      : [
          warning(
            "takeover",
            `${left} items are held by nodes that are gone`,
            `They are taken over within ${Math.ceil(until / SECOND_MS) + 1} s where a node runs.`,
          ),
        ]),
  ];
}

/** Agents that wait for nodes which are not there, and names that may be mistyped. */
function missingFindings(settings: Settings, { homes, nodes }: Awaited<ReturnType<typeof readPlaces>>): Finding[] {
  const { agents, policy } = revisionOf(settings, 0);
  const alive = nodes.filter(({ isAlive }) => isAlive);
  const known = new Map(homes.map(({ agent, ...home }) => [agent, home]));
  const absence = ({ id, nodes: named }: Agent): string | null =>
    absenceOf({ nodes: named, touchesFiles: touchesFiles(policy, id) }, known.get(id), alive);
  return missingNodes(agents.values(), absence, alive).map(({ problem, agents: ids }) =>
    warning(
      "agents.nodes",
      `${ids.slice(0, TOLD).join(", ")}${ids.length > TOLD ? ` and ${ids.length - TOLD} more` : ""}: ${problem}`,
      "Start that node; or bring agents/<id> of its home to another one and name that in agents.<id>.nodes.",
    ),
  );
}

function inWords({ name, version, url, state }: NodeView): string {
  return `${name} (${version}, ${url}${state === "draining" ? ", stopping" : ""})`;
}

function clockFinding(skew: number): Finding {
  const seconds = `${(Math.abs(skew) / SECOND_MS).toFixed(1)} s`;
  if (Math.abs(skew) <= SKEW_MS) return ok("clock", `like the database's, within ${seconds}`);
  return warning(
    "clock",
    `this machine is ${seconds} ${skew > 0 ? "behind" : "ahead of"} the database`,
    "Nothing depends on it but the times in logs; let the machine follow a time server.",
  );
}
