import { constants, statSync } from "node:fs";
import { open, opendir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../../kernel/clock.ts";
import { Failure } from "../../kernel/failure.ts";
import { agentHome } from "./agent-home.ts";

/** Something that an agent can read up when it is needed. */
export interface Skill {
  readonly name: string;
  readonly description: string;
}

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const FILE = "SKILL.md";
const MAX_SKILLS = 100;
const MAX_ENTRIES = 1_000;
const DESCRIPTION_CHARACTERS = 300;
const HEAD_BYTES = 8_192;
const MAX_BYTES = 200_000;
const REMEMBERED = 2_000;
/** What was changed twice within this may have the same time. */
const SAME_MOMENT_MS = 2_000;

interface Known {
  readonly mtimeMs: number;
  readonly size: number;
  readonly description: string | null;
}

/**
 * `<home>/agents/<id>/skills/<name>/SKILL.md` and, for everybody, `<home>/skills/<name>/SKILL.md`; an agent's own goes before. They are the
 * operator's: no agent can write there. Nothing is read through a link.
 */
export class Skills {
  readonly #home: string;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();
  readonly #listed = new Map<string, { readonly mtimeMs: number; readonly at: number; readonly names: readonly string[] }>();

  constructor(home: string, clock: Clock = systemClock) {
    this.#home = home;
    this.#clock = clock;
  }

  /** By name. */
  async of(agent: string): Promise<Skill[]> {
    const found = new Map<string, string>();
    for (const folder of this.#foldersOf(agent))
      for (const name of await this.#foldersIn(folder)) {
        const description = found.has(name) ? null : await this.#described(join(folder, name, FILE));
        if (description !== null && found.size < MAX_SKILLS) found.set(name, description);
      }
    return [...found].map(([name, description]) => ({ name, description })).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The whole text of one. */
  async read(agent: string, name: string): Promise<string> {
    for (const folder of NAME.test(name) ? this.#foldersOf(agent) : []) {
      if (!(await this.#foldersIn(folder)).includes(name)) continue;
      const text = await readPlain(join(folder, name, FILE), MAX_BYTES);
      if (text !== null) return text;
    }
    throw new Failure("request.not_found", `there is no skill "${name.slice(0, 64)}"`, { hint: "Name one of those you were told of." });
  }

  #foldersOf(agent: string): string[] {
    return [join(agentHome(this.#home, agent), "skills"), join(this.#home, "skills")];
  }

  /** Looked through again when the folder has changed, or may have in the same moment in which it was looked through last. */
  async #foldersIn(path: string): Promise<readonly string[]> {
    // Every turn asks, and most agents have none: as a promise it would take twenty times as long.
    const mtimeMs = changedAt(path);
    if (mtimeMs === undefined) return [];
    const known = this.#listed.get(path);
    if (known?.mtimeMs === mtimeMs && known.at > mtimeMs + SAME_MOMENT_MS) return known.names;
    const at = this.#clock.now();
    const names = await foldersIn(path);
    if (this.#listed.size >= REMEMBERED) this.#listed.clear();
    this.#listed.set(path, { mtimeMs, at, names });
    return names;
  }

  /** Null: there is no such file, or it does not say what it is for. */
  async #described(path: string): Promise<string | null> {
    const stats = await statPlain(path);
    if (stats === null) return null;
    const known = this.#known.get(path);
    if (known?.mtimeMs === stats.mtimeMs && known.size === stats.size) return known.description;
    const description = await descriptionIn((await readPlain(path, HEAD_BYTES)) ?? "");
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(path, { ...stats, description });
    return description;
  }
}

function changedAt(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  } catch {
    // What may not be looked at is not there.
    return undefined;
  }
}

/** Real folders with usable names, in their order. */
async function foldersIn(path: string): Promise<string[]> {
  const names: string[] = [];
  try {
    let seen = 0;
    for await (const entry of await opendir(path)) {
      if (entry.isDirectory() && NAME.test(entry.name)) names.push(entry.name);
      if (++seen >= MAX_ENTRIES) break;
    }
  } catch {
    return [];
  }
  return names.sort();
}

async function statPlain(path: string): Promise<{ readonly mtimeMs: number; readonly size: number } | null> {
  return withPlain(path, async (handle) => {
    const { mtimeMs, size } = await handle.stat();
    return { mtimeMs, size };
  });
}

async function readPlain(path: string, bytes: number): Promise<string | null> {
  return withPlain(path, async (handle) => {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
    return buffer.toString("utf8", 0, bytesRead).replaceAll("\0", "").toWellFormed();
  });
}

async function withPlain<T>(path: string, body: (handle: Awaited<ReturnType<typeof open>>) => Promise<T>): Promise<T | null> {
  let handle: Awaited<ReturnType<typeof open>> | undefined;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    return (await handle.stat()).isFile() ? await body(handle) : null;
  } catch {
    return null;
  } finally {
    await handle?.close();
  }
}

/** What its head says it is for, on one line. */
async function descriptionIn(text: string): Promise<string | null> {
  const head = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---[ \t]*(\r?\n|$)/.exec(text)?.[1];
  if (head === undefined) return null;
  const { parse } = await import("yaml");
  try {
    const { description } = parse(head, { maxAliasCount: 0 }) as { description?: unknown };
    if (typeof description !== "string" || description.trim() === "") return null;
    return description.replace(/\s+/g, " ").trim().slice(0, DESCRIPTION_CHARACTERS).toWellFormed();
  } catch {
    return null;
  }
}
