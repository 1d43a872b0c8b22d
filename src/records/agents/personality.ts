import { constants, lstatSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Agent } from "./agent.ts";
import { agentHome } from "./agent-home.ts";

const MAX_CHARACTERS = 100_000;
const MAX_BYTES = MAX_CHARACTERS * 4;
const REMEMBERED = 1_000;

interface Soul {
  readonly mtimeMs: number;
  readonly size: number;
  readonly text: string | null;
}

/** What agents are told about themselves: the config's own words, else their SOUL.md as it is now, else everybody's. */
export class Personalities {
  readonly #home: string;
  readonly #souls = new Map<string, Soul>();

  constructor(home: string) {
    this.#home = home;
  }

  async of(agent: Agent): Promise<string | null> {
    if (agent.hasOwnPersonality) return agent.personality;
    return (await this.#soulOf(agent.id)) ?? agent.personality;
  }

  /** Null where there is none, and for whatever is not a plain file: a link could show the agent somebody else's. */
  async #soulOf(id: string): Promise<string | null> {
    const path = join(agentHome(this.#home, id), "SOUL.md");
    let handle: Awaited<ReturnType<typeof open>> | undefined;
    try {
      // Every turn asks, and most agents have none: a promise that fails takes fifty times as long.
      if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) return null;
      handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const stats = await handle.stat();
      if (!stats.isFile()) return null;
      const { mtimeMs, size } = stats;
      const known = this.#souls.get(id);
      if (known?.mtimeMs === mtimeMs && known.size === size) return known.text;
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size, MAX_BYTES)), 0, Math.min(size, MAX_BYTES), 0);
      const text = buffer.toString("utf8", 0, bytesRead).replaceAll("\0", "").trim().slice(0, MAX_CHARACTERS).toWellFormed() || null;
      if (this.#souls.size >= REMEMBERED) this.#souls.clear();
      this.#souls.set(id, { mtimeMs, size, text });
      return text;
    } catch {
      return null;
    } finally {
      await handle?.close();
    }
  }
}
