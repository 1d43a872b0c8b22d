import { MemoryClient } from "../client/memory.ts";
import type { Note } from "../contract/memory.ts";
import { connectRunning } from "./connect.ts";
import { moment } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface ListOptions extends GlobalOptions {
  readonly agent?: string;
  readonly limit?: number;
}

export async function listNotes(q: string | undefined, { agent, limit, ...options }: ListOptions): Promise<number> {
  const { notes } = await (await clientFor(options)).list({ q, agent, limit });
  if (options.json) print(JSON.stringify({ notes }));
  else if (notes.length === 0) say(q === undefined ? "no notes yet" : "nothing was found");
  else print(notes.map(lineOf).join("\n"));
  return notes.length === 0 && q !== undefined ? 1 : 0;
}

export async function showNote(id: string, options: GlobalOptions): Promise<number> {
  const note = await (await clientFor(options)).read(id);
  print(options.json ? JSON.stringify(note) : `${headOf(note)}\n${harmless(note.text)}`);
  return 0;
}

export async function forgetNote(id: string, options: GlobalOptions): Promise<number> {
  const forgotten = await (await clientFor(options)).forget(id);
  print(options.json ? JSON.stringify(forgotten) : `forgotten: ${forgotten.id}`);
  return 0;
}

function lineOf(note: Note): string {
  return `${headOf(note)}\n  ${harmless(note.text.replace(/\s+/g, " "))}`;
}

function headOf({ id, agent, person, place, labels, pinned, createdAt }: Note): string {
  const where = [place.platform, place.chat, ...(place.topic === null ? [] : [place.topic])].map(harmless).join("/");
  const marks = [...(pinned ? ["pinned"] : []), ...labels].map((mark) => ` · ${mark}`).join("");
  return `${bold(id)} ${agent} · ${person === null ? "everybody" : harmless(person)} · ${where} · ${moment(createdAt)}${marks}`;
}

async function clientFor(options: GlobalOptions): Promise<MemoryClient> {
  return new MemoryClient(await connectRunning(options));
}
