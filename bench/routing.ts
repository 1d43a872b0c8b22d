import { runChild } from "./child.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import { hasOpenClaw, installOpenClaw, openClawVersion } from "./peers/openclaw.ts";
import type { Section } from "./report.ts";
import type { RoutesSide, RoutesTask } from "./routing/routes-worker.ts";
import { interleave, ratios, spread } from "./spread.ts";

const RULES = 10_000;
/** Fewer than the answers that OpenClaw keeps. */
const FEW_ADDRESSES = 1_000;
const GOAL_PER_SECOND = 1_500_000;
const GOAL_TIMES_OPENCLAW = 5;

export function run(options: BenchOptions): Promise<Section[]> {
  if (options.parts.includes("openclaw")) installOpenClaw(options.progress);
  return runParts("routing", { routes, ...(hasOpenClaw() && { openclaw: besideOpenClaw }) }, options);
}

const side = (side: RoutesSide, routes: number, few?: number) => async (): Promise<number> => {
  const task: RoutesTask = { side, rules: RULES, routes, ...(few !== undefined && { addresses: few }) };
  return (await runChild<{ perSecond: number }>("routing/routes-worker.ts", task)).perSecond;
};

async function routes({ rounds, progress }: BenchOptions): Promise<Section> {
  const results = await interleave(
    {
      route: side("route", 1_000_000),
      map: side("map", 1_000_000),
      scan: side("scan", 10_000),
      keyed: side("keyed", 500_000),
      stored: side("stored", 100_000),
      explained: side("explained", 200),
    },
    rounds,
    (line) => progress(`routing, ${line}`),
  );
  const { route, map, scan, keyed, stored, explained } = results;
  const against = (name: string, theirs: readonly number[]) => ({ against: { name, value: spread(theirs) }, ratio: ratios(route, theirs) });
  return {
    title: `Routes, ${RULES.toLocaleString("en")} bindings`,
    notes: [
      "One core. Five platforms; chats, topics, direct messages, guilds with and without roles. No address is asked about twice.",
      ...(hasOpenClaw()
        ? []
        : ["OpenClaw was not measured: `npm run bench -- routing openclaw` installs it (600 MB) and measures its resolver."]),
    ],
    figures: [
      { name: "routes, without a trace", unit: "/s", value: spread(route), goal: { atLeast: GOAL_PER_SECOND } },
      { name: "the same", unit: "/s", value: spread(route), ...against("one Map.get by the chat", map) },
      { name: "the same", unit: "/s", value: spread(route), ...against("all rules one after another, best first", scan) },
      { name: "with the key of the session", unit: "/s", value: spread(keyed) },
      { name: "with the trace that is stored (100 rules)", unit: "/s", value: spread(stored) },
      { name: "with the whole trace (all rules)", unit: "/s", value: spread(explained) },
    ],
  };
}

async function besideOpenClaw({ rounds, progress }: BenchOptions): Promise<Section> {
  const results = await interleave(
    {
      ours: side("keyed", 500_000),
      openclaw: side("openclaw", 200_000),
      oursAgain: side("keyed", 500_000, FEW_ADDRESSES),
      openclawAgain: side("openclaw", 200_000, FEW_ADDRESSES),
    },
    rounds,
    (line) => progress(`routing openclaw, ${line}`),
  );
  return {
    title: `Routes beside OpenClaw ${openClawVersion()}, the same ${RULES.toLocaleString("en")} bindings`,
    notes: [
      "Its resolveAgentRoute (openclaw/plugin-sdk/routing) answers the key of the session too, and so does ours here. Both gave the same agents.",
      "It keeps its last answers, up to 4,000; ours keeps none. So both cases are told: addresses that are new, and few that come again and again.",
    ],
    figures: [
      {
        name: "routes with the key of the session",
        unit: "/s",
        value: spread(results.ours),
        against: { name: "OpenClaw", value: spread(results.openclaw) },
        ratio: ratios(results.ours, results.openclaw),
        goal: { atLeast: GOAL_TIMES_OPENCLAW },
      },
      {
        name: `the same ${FEW_ADDRESSES.toLocaleString("en")} addresses again and again`,
        unit: "/s",
        value: spread(results.oursAgain),
        against: { name: "OpenClaw", value: spread(results.openclawAgain) },
        ratio: ratios(results.oursAgain, results.openclawAgain),
      },
    ],
  };
}
