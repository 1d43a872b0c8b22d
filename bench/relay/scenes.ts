import { seededRandom } from "../../src/kernel/random.ts";

/** One step: how long what it writes is, and whose results it needs. */
export interface SceneStep {
  readonly id: string;
  readonly sentences: number;
  readonly reads: readonly string[];
}

export interface Scene {
  readonly name: string;
  /** The last one is to know every fact of what it reads. A step starts when all that it reads is there. */
  readonly steps: readonly SceneStep[];
}

const step = (id: string, sentences: number, ...reads: string[]): SceneStep => ({ id, sentences, reads });

/** From a paragraph (200 tokens) to a small book (25,000 tokens) for each step. */
export const SCENES: readonly Scene[] = [
  { name: "2 steps, short", steps: [step("a", 10), step("b", 5, "a")] },
  { name: "3 steps, medium", steps: [step("a", 100), step("b", 100, "a"), step("c", 5, "a", "b")] },
  { name: "4 steps, three of them side by side", steps: [step("a", 60), step("b", 60), step("c", 60), step("d", 5, "a", "b", "c")] },
  {
    name: "5 steps in a row, long; the last needs two of them",
    steps: [step("a", 330), step("b", 330, "a"), step("c", 330, "b"), step("d", 330, "c"), step("e", 5, "a", "d")],
  },
  {
    name: "6 steps, short and long",
    steps: [
      step("a", 10),
      step("b", 330, "a"),
      step("c", 30, "a"),
      step("d", 120, "b", "c"),
      step("e", 60, "d"),
      step("f", 5, "b", "d", "e"),
    ],
  },
  { name: "3 steps, very long", steps: [step("a", 1_250), step("b", 1_250, "a"), step("c", 5, "a", "b")] },
];

const FACT_EVERY = 12;
const WORDS =
  "the report says that most of what was found in this part of the work agrees with earlier figures and needs no change for now while some of it was checked again by hand".split(
    " ",
  );

/** What a step writes: sentences that say nothing, and facts among them, each time the same. */
export function documentOf(scene: number, { id, sentences }: SceneStep): string {
  const random = seededRandom(scene * 1_000 + id.charCodeAt(0));
  const lines: string[] = [];
  for (let line = 0; line < sentences; line++) {
    const words = Array.from({ length: 12 }, () => WORDS[Math.floor(random.fraction() * WORDS.length)] as string);
    lines.push(`${words.join(" ")}.`);
  }
  for (const [place, fact] of factsAt(scene, { id, sentences })) lines[place] = `${fact}.`;
  return [...lines, endOf(scene, id)].join(" ");
}

/** By it a reader sees that a document is whole. */
export function endOf(scene: number, id: string): string {
  return `This was all of ${scene}${id}.`;
}

export function factsOf(scene: number, step: Pick<SceneStep, "id" | "sentences">): string[] {
  return factsAt(scene, step).map(([, fact]) => fact);
}

function factsAt(scene: number, { id, sentences }: Pick<SceneStep, "id" | "sentences">): [number, string][] {
  const random = seededRandom(scene * 1_000 + id.charCodeAt(0) + 500);
  const facts: [number, string][] = [];
  for (let first = 0; first < sentences; first += FACT_EVERY) {
    const place = first + Math.floor(random.fraction() * Math.min(FACT_EVERY, sentences - first));
    facts.push([place, `Fact ${scene}${id}${facts.length} is ${Math.floor(random.fraction() * 0xffffffff).toString(16)}`]);
  }
  return facts;
}

const FACT = /Fact \w+ is [0-9a-f]+/g;

export function factsIn(text: string): string[] {
  return [...new Set(text.match(FACT) ?? [])];
}
