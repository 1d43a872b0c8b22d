import { runChild } from "./child.ts";
import type { BenchOptions } from "./main.ts";
import { runParts } from "./parts.ts";
import type { RelayResult, RelayTask } from "./relay/relay-worker.ts";
import { SCENES } from "./relay/scenes.ts";
import type { Arm } from "./relay/scripted-model.ts";
import type { Figure, Section } from "./report.ts";
import { spread } from "./spread.ts";

const ARMS: readonly (readonly [Arm, string])[] = [
  ["summaries", "parent, summaries of a fifth"],
  ["half", "parent, summaries of a half"],
  ["inline", "parent, everything inline"],
  ["everything", "workflow, everything before it as reads"],
  ["declared", "workflow, declared reads"],
  ["pointers", "parent, pointers and read tool"],
];

/** Everything in it follows rules: one round says all there is to say. */
async function relay(_options: BenchOptions, folder: string): Promise<Section> {
  const task: RelayTask = { folder, arms: ARMS.map(([arm]) => arm) };
  const results = await runChild<RelayResult[]>("relay/relay-worker.ts", task);
  const figures = SCENES.flatMap(({ name }, scene): Figure[] => [
    ...ARMS.map(([arm, words]) =>
      figureOf(
        `${name}: ${words}`,
        results.filter((result) => result.scene === scene && result.arm === arm),
      ),
    ),
    ...meterOf(results.filter((result) => result.scene === scene)),
  ]);
  const all = ARMS.map(([arm, words]) =>
    figureOf(
      `ALL: ${words}`,
      results.filter((result) => result.arm === arm),
    ),
  );
  return {
    title: "Relay: how results get from step to step",
    notes: [
      "tokens: input and output of every call of the model, as the gateway recorded them; facts: those planted in what the last step needs, and found in its answer",
      "the model follows rules (bench/relay/scripted-model.ts); a summary keeps one sentence of five, or of two, whichever they are",
    ],
    figures: [...figures, ...all],
  };
}

function figureOf(name: string, results: readonly RelayResult[]): Figure {
  const sum = (of: (result: RelayResult) => number): number => results.reduce((total, result) => total + of(result), 0);
  const tokens = sum(({ input, output }) => input + output);
  return {
    name,
    unit: "tokens",
    value: spread([tokens]),
    words: [
      `input ${sum(({ input }) => input)}, output ${sum(({ output }) => output)}; facts ${sum(({ facts }) => facts)} of ${sum(({ planted }) => planted)}; calls of the model ${sum(({ calls }) => calls)}`,
    ],
  };
}

function meterOf(results: readonly RelayResult[]): Figure[] {
  const meter = results.find(({ arm }) => arm === "declared")?.meter;
  if (!meter) return [];
  return [
    {
      name: "  the meter of that run: through memory",
      unit: "tokens",
      value: spread([meter.throughMemory]),
      against: { name: "through a parent", value: spread([meter.throughParent]) },
    },
  ];
}

export const run = (options: BenchOptions): Promise<Section[]> => runParts("relay", { relay }, options);
