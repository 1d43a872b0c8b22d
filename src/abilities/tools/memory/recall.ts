import type { Note } from "../../../contract/memory.ts";
import type { Address } from "../../../deciders/routing/address.ts";
import type { Label } from "../../../kernel/label.ts";
import type { Agent } from "../../../records/agents/agent.ts";
import type { Revision } from "../../../records/agents/revision.ts";
import type { Memory } from "../../../records/memory/memory.ts";
import { readMemoryFile } from "../../../records/memory/memory-file.ts";
import { standpointOf } from "./standpoint-of.ts";

export interface RecallFrom {
  readonly agent: Agent;
  readonly revision: Revision;
  readonly address: Address;
  /** The message that is to be answered. */
  readonly input: string;
  /** Whether the turn may call memory_search: whoever may not is told nothing of what is remembered. */
  readonly mayRecall: boolean;
}

/** What a turn is told of its memory before the conversation, and what it carries from it. */
export interface Recalled {
  /** MEMORY.md, as people wrote it. */
  readonly file: string | null;
  /** Pinned notes, then those that this message reminds of. */
  readonly notes: string | null;
  readonly labels: readonly Label[];
}

const NOTHING: Recalled = { file: null, notes: null, labels: [] };
const PINNED = 50;
const PINNED_CHARACTERS = 6_000;
const REMINDED = 5;
const REMINDED_CHARACTERS = 3_000;
/** Of a long message, what is looked for: a page that somebody pasted has every word. */
const INPUT_CHARACTERS = 1_000;
/** Words that are in every message remind of nothing. */
const EMPTY_WORDS = new Set(
  (
    "a about after all also am an and any are as at be been before but by can could did do does for from get give go had has have he hello her " +
    "here hey hi him his how i if in into is it its just know let like make me more my no not now of on one only or our out over please said " +
    "say see she should so some tell than thank thanks that the their them then there these they this those to too up us use very want was " +
    "we were what when where which who why will with would yes you your"
  ).split(" "),
);

/** Bounded, and from this conversation's own standpoint: nothing that could not be heard here. */
export async function recall(memory: Memory, home: string, from: RecallFrom): Promise<Recalled> {
  if (!from.mayRecall) return NOTHING;
  const standpoint = standpointOf(from.agent, from.revision, from.address);
  const words = remindingWords(from.input);
  const [file, pinned, reminded] = await Promise.all([
    readMemoryFile(home, from.agent, from.address),
    memory.pinned(standpoint, PINNED),
    words === "" ? [] : memory.search(standpoint, words, REMINDED, "any"),
  ]);
  const always = fitting(pinned, PINNED_CHARACTERS);
  const now = fitting(
    reminded.filter(({ id }) => !always.some((note) => note.id === id)),
    REMINDED_CHARACTERS,
  );
  const parts = [
    ...(always.length === 0 ? [] : ["Notes you keep in mind:", ...always.map(inWords)]),
    ...(now.length === 0 ? [] : ["Notes you have saved that may matter here (memory_search finds more):", ...now.map(inWords)]),
  ];
  const labels = [...new Set([...always, ...now].flatMap((note) => note.labels))];
  return { file, notes: parts.length === 0 ? null : parts.join("\n"), labels };
}

function remindingWords(input: string): string {
  const words = input.slice(0, INPUT_CHARACTERS).match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.filter((word) => !EMPTY_WORDS.has(word.toLowerCase())).join(" ");
}

function fitting(notes: readonly Note[], characters: number): Note[] {
  let left = characters;
  return notes.filter(({ text }) => {
    left -= text.length;
    return left >= 0;
  });
}

/** On one line: nothing in a note can look like something else than a note. */
function inWords({ id, text, labels }: Note): string {
  const whose = labels.includes("external") ? " (from outside)" : "";
  return `- [${id}]${whose} ${text.replace(/\s+/g, " ")}`;
}
