import { sampleValue } from "./sample-value.ts";

/** A step of a workflow as its agent is told of it. */
export interface WorkflowStep {
  readonly goal: string;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** JSON Schemas by key, of those that have one. */
  readonly schemas: Readonly<Record<string, unknown>>;
}

const GOAL = /^[ #*]*(?:goal|task)[ *]*:[ *]*(.+)$/im;
const READS = /^[ #*]*(?:reads?)[ *]*:[ *]*(.+)$/im;
const WRITES = /^[ #*]*(?:writes?|declared writes)[ *]*:[ *]*(.+)$/im;
const SCHEMA = /^schema of (.+?): ([{].*)$/gim;
const KEY = /[\w./-]+/g;
const QUOTED_CHARACTERS = 160;
const MAX_CHARACTERS = 50_000;

/** `goal: …`, `writes: a, b` and perhaps `reads: c`, each on a line of its own. */
export function workflowStepOf(text: string): WorkflowStep | null {
  if (text.length > MAX_CHARACTERS) return null;
  const goal = GOAL.exec(text)?.[1]?.trim();
  const writes = keysIn(WRITES.exec(text)?.[1]);
  return goal === undefined || writes.length === 0
    ? null
    : { goal, writes, reads: keysIn(READS.exec(text)?.[1]), schemas: schemasIn(text) };
}

/** The same as a value that fits where the key says what it holds. */
export function workAsValue(step: WorkflowStep, key: string, known: Readonly<Record<string, string>>): unknown {
  const words = workOf(step, key, known);
  if (!Object.hasOwn(step.schemas, key)) return words;
  const schema = step.schemas[key];
  const value = sampleValue(schema, words);
  const isOpen = (schema as { additionalProperties?: unknown }).additionalProperties !== false;
  const isEmpty = typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
  // An object of which nothing is said may say something.
  return isEmpty && isOpen ? { text: words } : value;
}

/** What such a step comes to, by its words alone: plausible, and the same every time. `known` is what it has read, by key. */
export function workOf({ goal, reads }: WorkflowStep, key: string, known: Readonly<Record<string, string>>): string {
  const subject = goal.replace(/[.!?]+$/, "");
  const built = reads.map((read) => (known[read] === undefined ? read : `${read} ("${inShort(known[read])}")`));
  return [
    `${key}: ${subject}.`,
    ...POINTS.map((point, index) => `${index + 1}. ${point} for "${subject}".`),
    ...(built.length === 0 ? [] : [`Built on ${built.join(", ")}.`]),
    "(Written by the scripted offline demo.)",
  ].join("\n");
}

const POINTS = ["What is asked and what is not", "The smallest thing that works", "How to see that it does"];

function schemasIn(text: string): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [, key = "", schema = ""] of text.matchAll(SCHEMA))
    try {
      Object.defineProperty(found, key, { value: JSON.parse(schema), enumerable: true });
    } catch {
      // Words that only look like it.
    }
  return found;
}

function keysIn(line: string | undefined): string[] {
  return [...new Set(line?.match(KEY) ?? [])].filter((key) => !["and", "none", "-"].includes(key));
}

function inShort(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= QUOTED_CHARACTERS ? line : `${line.slice(0, QUOTED_CHARACTERS).toWellFormed()}…`;
}
