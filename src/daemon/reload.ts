import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { sha256 } from "../kernel/canonical-json.ts";
import { asFailure, Failure, isFailure } from "../kernel/failure.ts";
import { changesBetween } from "../records/agents/config-changes.ts";
import type { NewestRevision, RecordRules } from "../records/agents/config-revisions.ts";
import type { AgentRegistry } from "../records/agents/registry.ts";
import type { Revision } from "../records/agents/revision.ts";
import type { ConfigProblem } from "../settings/config-problem.ts";
import type { EditBase } from "../settings/edit-config.ts";
import type { Settings } from "../settings/load-settings.ts";
import type { FileLooks } from "../settings/watch-files.ts";
import { FileHere, type FileParts, type FirstFile, type Wanted } from "./file-here.ts";
import { type LocalModels, tellDefault } from "./local-models.ts";
import { type RevisionParts, revisionUnder, storeRevision } from "./store-revision.ts";
import { ownSectionsOf, storedSettings } from "./stored-settings.ts";
import { refusalInWords, tellQuarantined, tellWarnings } from "./tell-config.ts";

export interface ReloadParts extends RevisionParts, FileParts {
  /** Of the channels that the program around us brings. */
  readonly platforms?: readonly string[];
  /** How those files look now: as long as they look the same, they need not be read again. */
  looks(): FileLooks;
  readonly local?: LocalModels | undefined;
}

/** A text that cannot be read may be half of one: it counts when it has stayed so. */
const STAYS_MS = 500;
/** Shorter where all but one agent's section can be read: the others must not wait. */
const BROKEN_STAYS_MS = 250;
/** Of nodes that change the config again and again, each comes to its turn. */
const TRIES = 20;

/** Settings that are not applied yet, and how their files looked before they were read. */
interface Unsure {
  readonly wanted: Wanted;
  readonly looks: FileLooks;
}

/** What the others run on and this node cannot. */
interface Blocked {
  readonly number: number;
  readonly words: string;
  /** Of the files that could help, when it was last tried. */
  readonly looks: FileLooks;
}

/**
 * Takes what the config says now, as a whole or not at all. Where nodes share a store, that is the newest revision there; the file of a node
 * makes one when somebody changes it, and is otherwise no reason to leave what the others run on.
 */
export class Reload {
  readonly #parts: ReloadParts;
  readonly #agents: AgentRegistry;
  readonly #settled: () => Promise<unknown>;
  readonly #isShared: boolean;
  #last: Promise<unknown> = Promise.resolve();
  readonly #file: FileHere;
  #blocked: Blocked | undefined;

  /** `settled` is called after each new revision is in force here, when it shows that one cannot be, and when a file can be used again. */
  constructor(parts: ReloadParts, agents: AgentRegistry, file: FirstFile, settled: () => Promise<unknown>) {
    this.#parts = parts;
    this.#agents = agents;
    this.#file = new FileHere(parts, file);
    this.#settled = settled;
    this.#isShared = parts.store.kind === "postgres";
  }

  /** Why this node does not run on the newest config, or on its file; null: it does. */
  get problem(): string | null {
    return this.#blocked?.words ?? this.#file.trouble ?? null;
  }

  /** The newest revision that was tried here. */
  get known(): number {
    return Math.max(this.#agents.current.number, this.#blocked?.number ?? 0);
  }

  /** Resolves when what the files say is applied; refuses, and changes nothing, when it cannot be. */
  now(): Promise<void> {
    return this.#take();
  }

  /** Takes what another node has applied since. */
  follow(): Promise<void> {
    return this.#isShared ? this.#inTurn(() => this.#follow()) : Promise.resolve();
  }

  /**
   * Has the file changed by `write`, on what runs everywhere, and applies it. `base`: the text to write the change into, in place of one in the
   * file that has become old. What others apply meanwhile is not undone: then it is all done once more, on theirs.
   */
  async edit(write: (base: EditBase | undefined) => Promise<unknown>): Promise<void> {
    for (let tries = 1; ; tries++) {
      if (this.#isShared) await this.#take();
      try {
        return await this.#inTurn(() => this.#editOnce(write));
      } catch (error) {
        if (!this.#isShared || !isFailure(error, "config.changed") || tries === TRIES) throw error;
      }
    }
  }

  /**
   * After a change that nobody has announced: a text that cannot be used is reported, and the revision of before goes on. Answers whether
   * that is all; false: the store does not answer, and it should be tried again. Aborted, it waits for nothing and reports nothing more.
   */
  async changed(signal?: AbortSignal): Promise<boolean> {
    let unsure: Unsure | undefined;
    try {
      unsure = await this.#unlessBroken();
      if (!unsure) return true;
    } catch (error) {
      if (!isFailure(error, "config.invalid")) return this.#postpone(asFailure(error));
    }
    // It may be half of a text that is being written.
    await sleep(unsure ? BROKEN_STAYS_MS : STAYS_MS, undefined, { signal }).catch(() => {});
    if (signal?.aborted) return true;
    try {
      await this.#take(unsure);
      return true;
    } catch (error) {
      return isFailure(error, "config.invalid") ? this.#reject(error) : this.#postpone(asFailure(error));
    }
  }

  /** Takes what the files say; `known` is what they said when they were last read, and holds while they look the same. */
  #take(known?: Unsure): Promise<void> {
    return this.#inTurn(async () => {
      await this.#apply(known?.looks === this.#parts.looks() ? known.wanted : await this.#file.wanted(this.#agents.current));
      await this.#follow();
    });
  }

  /** Takes what the files say, unless it breaks an agent that was sound: then it answers what that is. */
  #unlessBroken(): Promise<Unsure | undefined> {
    return this.#inTurn(async () => {
      const looks = this.#parts.looks();
      const wanted = await this.#file.wanted(this.#agents.current);
      const { quarantined } = this.#agents.current.settings;
      if ([...wanted.settings.quarantined.keys()].some((id) => !quarantined.has(id))) return { wanted, looks };
      await this.#apply(wanted);
      await this.#follow();
    });
  }

  /** One after the other. */
  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const next = this.#last.then(body);
    this.#last = next.catch(() => {});
    return next;
  }

  async #apply({ settings, fileHash, isEdited }: Wanted, rules: RecordRules = {}): Promise<void> {
    const { log, configFile } = this.#parts;
    const before = this.#agents.current;
    const changes = changesBetween(before.settings, settings);
    const isSameText = before.settings.configHash === settings.configHash;
    // Somebody's own edit: it is taken also where it replaces what others have changed, but not without a word.
    const mayReplace = this.#isShared && isEdited && !isSameText && rules.after === undefined;
    let replaces = mayReplace && this.#file.olderThan(before.settings) !== undefined;
    if (isSameText && changes.length === 0) {
      const wasTrouble = this.#file.trouble !== undefined;
      this.#file.settle(fileHash);
      if (!wasTrouble) return;
      log.info("the config is as it was before", { revision: before.number });
      await this.#settled();
      return;
    }
    const told = changes.length > 0 ? changes : ["nothing but words and order"];
    // Other names are no reason to bring back a text that another node has replaced.
    const first = isSameText || mayReplace ? { always: isSameText, after: before.number } : rules;
    const next = await storeRevision(this.#parts, settings, told, first).catch((error: unknown) => {
      if (!this.#isShared || first === rules || !isFailure(error, "config.changed")) throw error;
      replaces = mayReplace;
      return mayReplace ? storeRevision(this.#parts, settings, told) : undefined;
    });
    this.#file.settle(fileHash);
    // Nothing to store; but the names of now hold here all the same, in case what has replaced it cannot be used.
    if (!next) return this.#put(revisionUnder(this.#parts, settings, before.number));
    if (replaces)
      log.warn("the config file was changed from an older text: what others had changed since is replaced", {
        file: configFile,
        revision: next.number,
      });
    log.info("the config was applied", { revision: next.number, changes: told.join("; ") });
    await this.#put(next);
  }

  async #follow(): Promise<void> {
    const { revisions, log } = this.#parts;
    const newest = this.#isShared ? await revisions.newest() : undefined;
    const before = this.#agents.current;
    if (!newest || newest.number <= before.number) {
      this.#blocked = undefined;
      return;
    }
    const looks = this.#parts.looks();
    if (this.#blocked?.number === newest.number && this.#blocked.looks === looks) return;
    let settings: Settings;
    try {
      settings = await this.#settingsOf(newest);
    } catch (error) {
      if (!isFailure(error, "config.invalid")) throw error;
      return this.#block(newest, error, looks);
    }
    const told = changesBetween(before.settings, settings).join("; ") || "nothing";
    log.info("the config that another node has applied is in force here", { revision: newest.number, node: newest.node, changes: told });
    await this.#put(revisionUnder(this.#parts, settings, newest.number));
  }

  /** The same text by another number, the file that somebody has put here as well, or what is stored. */
  async #settingsOf(newest: NewestRevision): Promise<Settings> {
    const { revisions, load, read } = this.#parts;
    const { settings } = this.#agents.current;
    if (newest.hash === settings.configHash) return settings;
    const file = await load().catch((error: unknown) => {
      if (!isFailure(error, "config.invalid")) throw error;
    });
    if (file?.configHash !== newest.hash) return storedSettings(revisions, read, newest, ownSectionsOf(settings));
    this.#file.settle(newest.hash);
    return file;
  }

  async #put(next: Revision): Promise<void> {
    const { log } = this.#parts;
    const { settings: before } = this.#agents.current;
    const { settings } = next;
    this.#agents.apply(next);
    if (this.#blocked && next.number >= this.#blocked.number) this.#blocked = undefined;
    tellQuarantined(log, settings, before);
    tellWarnings(log, settings, before);
    if (settings.modelKeys.localModel !== before.modelKeys.localModel) tellDefault(log, settings);
    await this.#settled();
  }

  async #editOnce(write: (base: EditBase | undefined) => Promise<unknown>): Promise<void> {
    const { number, settings } = this.#agents.current;
    if (this.#blocked)
      throw new Failure("config.invalid", `nothing was changed: ${this.#blocked.words}`, {
        hint: "Correct that first, or make the change on a node that runs on the newest revision.",
      });
    const instead = this.#isShared ? this.#file.olderThan(settings) : undefined;
    await write(instead === undefined ? undefined : { text: settings.configText, instead });
    const wanted = await this.#file.wanted(this.#agents.current);
    await this.#apply(wanted, this.#isShared ? { after: number } : {}).catch((error: unknown) => {
      // What was written stands on an old revision, and nobody runs on it: the next try may replace it.
      if (isFailure(error, "config.changed")) this.#file.settle(wanted.fileHash);
      throw error;
    });
  }

  #postpone(failure: Failure): false {
    const { code, message } = failure;
    if (this.#file.isNews(message))
      this.#parts.log.error("the config cannot be applied yet; the one before goes on", { code, error: message });
    return false;
  }

  async #block(newest: NewestRevision, failure: Failure, looks: FileLooks): Promise<void> {
    const words = `revision ${newest.number} of the config, of node ${newest.node}, cannot be used here: ${refusalInWords(failure)}`;
    const isTold = this.#blocked?.words === words;
    this.#blocked = { number: newest.number, words, looks };
    if (isTold) return;
    this.#parts.log.error("the newest config cannot be used on this node; the one before goes on", {
      revision: this.#agents.current.number,
      problem: words,
    });
    await this.#settled();
  }

  async #reject(failure: Failure): Promise<true> {
    const { store, revisions, node, name, log, configFile } = this.#parts;
    if (!this.#file.isNews(failure.message)) return true;
    const problems = (failure.details.problems ?? []) as readonly ConfigProblem[];
    log.error("the config was rejected; the one before goes on", {
      revision: this.#agents.current.number,
      problems: refusalInWords(failure),
    });
    const said = { hash: hashOf(configFile), state: "rejected" as const, text: "", isWhole: false, changes: [failure.message], problems };
    await store
      .transact("reject config", (tx) => revisions.recordIn(tx, { ...said, node: name, actor: node }, { always: true }), "locked")
      .catch((error: unknown) => log.warn("the rejection could not be stored", { code: asFailure(error).code }));
    await this.#settled();
    return true;
  }
}

function hashOf(file: string): string {
  try {
    return sha256(readFileSync(file, "utf8"));
  } catch {
    return "";
  }
}
