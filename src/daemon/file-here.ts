import { Failure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import type { ConfigRevisions } from "../records/agents/config-revisions.ts";
import type { Revision } from "../records/agents/revision.ts";
import type { Settings } from "../settings/load-settings.ts";
import { ownSectionsOf, type ReadText } from "./stored-settings.ts";

/** What the file here was at the start. */
export interface FirstFile {
  /** Null: it could not be used. */
  readonly hash: string | null;
  /** Why, in words. */
  readonly trouble?: string;
}

/** Settings that are not applied yet. */
export interface Wanted {
  readonly settings: Settings;
  /** Of what the file says, which may be older than what runs. */
  readonly fileHash: string;
  /** Somebody has changed the file. */
  readonly isEdited: boolean;
}

export interface FileParts {
  readonly revisions: ConfigRevisions;
  readonly log: Log;
  readonly configFile: string;
  /** Reads the files as they are now. */
  load(): Promise<Settings>;
  /** Reads a text as if the file said it. */
  readonly read: ReadText;
}

/** The config file of this node: what it was last taken for, and whether what it says now is somebody's wish. */
export class FileHere {
  readonly #parts: FileParts;
  /** Of what it said when it was last taken for what it is. Null: it never could be. */
  #hash: string | null;
  /** What is wrong with it as it is, once it was told. */
  #trouble: string | undefined;

  constructor(parts: FileParts, { hash, trouble }: FirstFile) {
    this.#parts = parts;
    this.#hash = hash;
    this.#trouble = trouble;
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Undefined: it holds the text of these settings, or nothing that could be told. */
  olderThan({ configHash }: Settings): string | undefined {
    return this.#hash === null || this.#hash === configHash ? undefined : this.#hash;
  }

  settle(hash: string): void {
    this.#hash = hash;
    this.#trouble = undefined;
  }

  /** Answers whether it is news. */
  isNews(trouble: string): boolean {
    const isNews = this.#trouble !== trouble;
    this.#trouble = trouble;
    return isNews;
  }

  /** What it comes to: a file that nobody has touched says no more than that, and what runs is read with the names of now. */
  async wanted({ number, settings: before }: Revision): Promise<Wanted> {
    const { load, read, log, configFile } = this.#parts;
    const file = await load();
    const fileHash = file.configHash;
    const older = await this.#overtaken(fileHash, before);
    const isEdited = this.#hash !== fileHash && older === undefined;
    if (isEdited) refuseEmptied(file, before);
    if (isEdited || fileHash === before.configHash) return { settings: file, fileHash, isEdited };
    if (older !== undefined)
      log.warn("the config file was changed to a text that is older than what runs, and is not in force", {
        file: configFile,
        older,
        revision: number,
      });
    return { settings: await read(before.configText, ownSectionsOf(before)), fileHash, isEdited };
  }

  /**
   * The revision that an old file has become, where others have left that one behind too: it follows them, only later, as when it was pulled or
   * copied here. One that holds what runs, or goes back to what was before it, is changed by somebody who wants that.
   */
  async #overtaken(hash: string, { configHash }: Settings): Promise<number | undefined> {
    const { revisions } = this.#parts;
    if (hash === this.#hash || hash === configHash || this.#hash === configHash) return undefined;
    const number = await revisions.numberOf(hash);
    // What could not be used at the start is judged as it would have been then.
    const before = this.#hash === null ? 0 : ((await revisions.numberOf(this.#hash)) ?? 0);
    return number !== undefined && number > before ? number : undefined;
  }
}

/**
 * A file that is gone or empty takes nobody away from a daemon that runs. Without it one agent with every tool would be left, which is no
 * way to end what a file has denied; and whoever writes in place empties the file first.
 */
export function refuseEmptied({ configText }: Settings, before: Settings): void {
  if (configText.trim() !== "" || before.configText.trim() === "") return;
  const hint = "Write it again. To go on without one, start the daemon anew.";
  throw new Failure("config.invalid", "the config file is gone or empty", { hint });
}
