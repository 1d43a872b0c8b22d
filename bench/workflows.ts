import { runChild } from "./child.ts";
import { buildFsyncShim, type FsyncShim } from "./fsync-shim.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { PeerStepsTask } from "./peers/workflow-steps-worker.ts";
import { installPeers, versionOf } from "./peers.ts";
import type { Figure, Goal, Section } from "./report.ts";
import { interleave, ratios, spread } from "./spread.ts";
import type { StepsResult, StepsTask } from "./workflows/steps-task.ts";

const CHAIN = 100;
const FAN = 50;
const AT_ONCE = 16;
const RUNS = 32;
const GOAL: Goal = { atLeast: 5 };
/** How long a commit is waited for. The third: what an fsync takes longer on a disk that has no cache of its own to answer from. */
const DISKS = { "not synced": null, synced: 0, "synced, an fsync takes 2 ms longer": 2 } as const;
type Disk = keyof typeof DISKS;
const SIDES = ["engine", "turns", "langgraph", "mastra"] as const;
type Side = (typeof SIDES)[number];

const PEERS = {
  langgraph: { name: "LangGraph.js, SQLite saver", of: "@langchain/langgraph" },
  mastra: { name: "Mastra, LibSQL", of: "@mastra/core" },
} as const;

function sideOf(side: Side, task: StepsTask, environment: Record<string, string>): Promise<StepsResult> {
  if (side === "engine" || side === "turns")
    return runChild("workflows/steps-worker.ts", { ...task, turns: side === "turns" }, environment);
  return runChild("peers/workflow-steps-worker.ts", { ...task, peer: side } satisfies PeerStepsTask, environment);
}

async function figuresOf(
  { rounds, progress }: BenchOptions,
  folder: string,
  shim: FsyncShim,
  shape: "chain" | "fan",
  disk: Disk,
  atOnce: number,
): Promise<Figure[]> {
  const steps = shape === "chain" ? CHAIN : FAN;
  const longer = DISKS[disk];
  const task: StepsTask = { folder, shape, steps, runs: atOnce === 1 ? RUNS / 4 : RUNS, atOnce, synced: longer !== null };
  const words = `${shape === "chain" ? `chain of ${CHAIN}` : `fan-out of ${FAN}`}, ${disk}, ${atOnce === 1 ? "one run at a time" : `${atOnce} runs at once`}`;
  const environment = (): Record<string, string> => (longer === null ? shim.withoutSync() : shim.environment(longer));
  const results = await interleave(
    Object.fromEntries(SIDES.map((side) => [side, () => sideOf(side, task, environment())])) as Record<Side, () => Promise<StepsResult>>,
    rounds,
    (line) => progress(`workflows, ${words}, ${line}`),
  );
  const ms = (side: Side): number[] => results[side].map(({ msPerStep }) => msPerStep);
  const syncs = (side: Side): string => {
    const [first] = results[side];
    return first?.fsyncsPerStep === null || first === undefined ? "" : `${first.fsyncsPerStep.toFixed(2)} fsyncs a step`;
  };
  const against = (ours: "engine" | "turns", peer: "langgraph" | "mastra", goal: boolean): Figure => ({
    name: `  ${ours === "engine" ? "engine" : "with a whole turn of an agent"}`,
    unit: "ms",
    value: spread(ms(ours)),
    against: { name: PEERS[peer].name, value: spread(ms(peer)) },
    ratio: ratios(ms(peer), ms(ours)),
    ...(goal ? { goal: GOAL } : {}),
    words: [`${syncs(ours)}, theirs ${syncs(peer)}`],
  });
  // Amortised is what is promised: a run alone waits for the disk with every step, whoever keeps it.
  const promised = atOnce > 1;
  return [
    { name: words, unit: "ms", value: spread(ms("engine")) },
    against("engine", "langgraph", promised),
    against("engine", "mastra", promised),
    against("turns", "langgraph", false),
    against("turns", "mastra", false),
  ];
}

const part =
  (shape: "chain" | "fan") =>
  async (options: BenchOptions, folder: string): Promise<Section> => {
    installPeers(options.progress);
    const shim = buildFsyncShim(folder);
    if (typeof shim === "string") throw new Error(`this benchmark needs the fsync shim: ${shim}`);
    const figures: Figure[] = [];
    for (const disk of Object.keys(DISKS) as Disk[])
      for (const atOnce of [AT_ONCE, 1]) figures.push(...(await figuresOf(options, folder, shim, shape, disk, atOnce)));
    return {
      title: shape === "chain" ? `Durable steps: a chain of ${CHAIN}` : `Durable steps: ${FAN} side by side`,
      notes: [
        "Milliseconds of one step that does nothing but answer a few words, which are kept before the next one begins. The ratio is theirs through ours.",
        "Engine: the step is claimed, its answer recorded, what follows planned and started, as with every turn; the turn itself is left out, as theirs have none.",
        "Not synced: nobody waits for the disk, which is how both peers set their database up. Synced: every commit is on the disk before it counts, as it always is with us.",
        "Here an fsync is answered by the disk's cache in a fifth of a millisecond; the last rows add what one takes on a disk that has none.",
        Object.values(PEERS)
          .map(({ name, of }) => `${name} ${versionOf(of)}`)
          .join("; "),
      ],
      figures,
    };
  };

export function run(options: BenchOptions): Promise<Section[]> {
  return runParts("workflows", { chain: part("chain"), fan: part("fan") }, options);
}
