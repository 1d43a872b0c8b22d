import { runChild } from "./child.ts";
import type { LoadedPlatformResult, LoadedPlatformTask } from "./load/platform-worker.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { Figure, Section, Unit } from "./report.ts";
import { ratios, spread } from "./spread.ts";

const AGENTS = 20;
const CHATS = 200;
const WARM_UP_MS = 12_000;
const FULL_MS = 10_000;
const OVERLOAD_MS = 10_000;
const COMMITS = 1_000;
const MINUTE_MS = 60_000;
/** Beside the minutes that were asked for: warming up, the overload, and getting over it. */
const BESIDE_MS = 8 * MINUTE_MS;

interface Round {
  readonly commits: { readonly perSecond: number };
  readonly load: LoadedPlatformResult;
}

/** The minutes are the same however short they are; below one, so is everything else. */
async function telegram({ rounds, minutes, progress }: BenchOptions, folder: string): Promise<Section> {
  const done: Round[] = [];
  const short = Math.min(1, minutes);
  const limitMs = minutes * MINUTE_MS + BESIDE_MS;
  for (let round = 1; round <= rounds; round++) {
    progress(`load, round ${round} of ${rounds}: ${minutes} minutes and the overload`);
    const commits = await runChild<Round["commits"]>("turns/commits-worker.ts", { folder, commits: COMMITS });
    const task: LoadedPlatformTask = {
      folder,
      agents: AGENTS,
      chats: CHATS,
      warmUpMs: WARM_UP_MS * short,
      fullMs: FULL_MS * short,
      steadyMs: minutes * MINUTE_MS,
      overloadMs: OVERLOAD_MS * short,
      limitMs,
    };
    done.push({ commits, load: await runChild<LoadedPlatformResult>("load/platform-worker.ts", task, {}, limitMs) });
  }
  const of = (value: (load: LoadedPlatformResult) => number): number[] => done.map(({ load }) => value(load));
  const figure = (name: string, unit: Unit, value: (load: LoadedPlatformResult) => number): Figure => ({
    name,
    unit,
    value: spread(of(value)),
  });
  const raw = done.map(({ commits }) => commits.perSecond);
  const rate = of(({ full }) => full.perSecond);
  const complaints = done.flatMap(({ load }) => load.complaints);
  return {
    title: `Load: ${CHATS} chats with ${AGENTS} agents on Telegram, on SQLite`,
    notes: [
      "A model in the daemon's process that answers at once; the platform is a process of its own. From the moment in which the platform has a message until it has the answer.",
      `${minutes} minutes at half of what it can do, then ten times that for ${(OVERLOAD_MS * short) / 1_000} s, then half again: what was left is worked off by the other half.`,
      ...(complaints.length > 0 ? [`THE PLATFORM COMPLAINS: ${[...new Set(complaints)].join("; ")}`] : []),
    ],
    figures: [
      {
        name: "answers, as many at once as there are chats",
        unit: "/s",
        value: spread(rate),
        against: { name: "raw durable commits", value: spread(raw) },
        ratio: ratios(rate, raw),
      },
      figure("  p50", "ms", ({ full }) => full.p50),
      figure("  p99", "ms", ({ full }) => full.p99),
      figure("answers at half of that", "/s", ({ steady }) => steady.perSecond),
      figure("  p50", "ms", ({ steady }) => steady.p50),
      figure("  p99", "ms", ({ steady }) => steady.p99),
      figure("  resident memory at its beginning", "MiB", ({ steady }) => steady.firstMiB),
      figure("  at its end", "MiB", ({ steady }) => steady.lastMiB),
      figure("  slope", "MiB/min", ({ steady }) => steady.slope),
      figure("answers at ten times that", "/s", ({ overload }) => overload.perSecond),
      figure("  p50 of them", "ms", ({ overload }) => overload.p50),
      figure("  p99", "ms", ({ overload }) => overload.p99),
      figure("  largest resident memory", "MiB", ({ overload }) => overload.peakMiB),
      figure("  not answered when it ends", "turns", ({ overload }) => overload.left),
      figure("  until answers are as quick as before", "ms", ({ backMs }) => backMs ?? Number.POSITIVE_INFINITY),
      figure("  refused, since no more may wait", "turns", ({ refused }) => refused),
      figure("processor time of the daemon for a message", "ms", ({ daemonCpuMs, messages }) => daemonCpuMs / messages),
      figure("  of the platform", "ms", ({ platformCpuMs, messages }) => platformCpuMs / messages),
    ],
  };
}

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("load", { telegram }, options);
}
