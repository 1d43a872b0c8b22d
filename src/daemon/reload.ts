import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { COMMONS } from "../contract/guests.ts";
import { sha256 } from "../kernel/canonical-json.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import { asFailure, Failure, isFailure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import type { Redaction } from "../kernel/redact.ts";
import { changesBetween } from "../records/agents/config-changes.ts";
import type { ConfigRevisions } from "../records/agents/config-revisions.ts";
import type { AgentRegistry } from "../records/agents/registry.ts";
import { type Revision, revisionOf } from "../records/agents/revision.ts";
import type { Pools } from "../records/pools/pools.ts";
import { type ConfigProblem, configFailure, inWords } from "../settings/config-problem.ts";
import type { Settings } from "../settings/load-settings.ts";
import type { FileLooks } from "../settings/watch-files.ts";
import type { Store } from "../store/store.ts";
import { type LocalModels, tellDefault } from "./local-models.ts";

export interface ReloadParts {
  readonly store: Store;
  readonly revisions: ConfigRevisions;
  readonly pools: Pools;
  readonly node: string;
  readonly log: Log;
  readonly redaction: Redaction;
  readonly reached: ReachedPoint;
  readonly configFile: string;
  /** Of the tools that the program around us brings. */
  readonly toolNames?: readonly string[];
  /** Of the channels that the program around us brings. */
  readonly platforms?: readonly string[];
  /** Reads the files as they are now. */
  load(): Promise<Settings>;
  /** How those files look now: as long as they look the same, they need not be read again. */
  looks(): FileLooks;
  readonly observe?: ObserveConfig | undefined;
  readonly local?: LocalModels | undefined;
}

/** For whoever wants to know who reads what of a config: sees settings and revisions before anybody else, and may put others in their place. */
export interface ObserveConfig {
  settings(settings: Settings): Settings;
  revision(revision: Revision): Revision;
}

/** A text that cannot be read may be half of one: it counts when it has stayed so. */
const STAYS_MS = 500;
/** Shorter where all but one agent's section can be read: the others must not wait. */
const BROKEN_STAYS_MS = 250;

/** Stores the settings as a revision, unless they are the last one's already, and makes the pools what they say. */
export async function storeRevision(parts: ReloadParts, settings: Settings, changes: readonly string[], always = false): Promise<Revision> {
  const { store, revisions, pools, node, redaction } = parts;
  redaction.add(settings.secrets.values());
  const problems = [...settings.quarantined.values()].flat();
  const wanted = { [COMMONS]: { readers: ["*"], writers: ["*"] }, ...settings.config.pools };
  refuseBadPools(pools, wanted, settings);
  const entry = {
    hash: settings.configHash,
    state: "applied" as const,
    node,
    text: redaction.text(settings.configText),
    changes,
    problems,
  };
  const { number } = await store.transact(
    "apply config",
    async (tx) => {
      await pools.reconcileIn(tx, wanted);
      return revisions.recordIn(tx, entry, always);
    },
    "locked",
  );
  parts.reached("config.stored");
  const revision = revisionOf(settings, number, parts.toolNames);
  return parts.observe?.revision(revision) ?? revision;
}

/** With the place in the file, which the pools do not know. */
function refuseBadPools(pools: Pools, wanted: Parameters<Pools["checkConfig"]>[0], { configFile, originOf }: Settings): void {
  try {
    pools.checkConfig(wanted);
  } catch (error) {
    const { message, details } = asFailure(error);
    const origin = originOf(["pools", String(details.pool)]);
    if (configFile === null || origin === null) throw error;
    const path = `pools.${details.pool}`;
    const fix = "Correct the schema of its keys; `$ref` must lead somewhere, and patterns must be valid.";
    const said = message.replace(`${path}: `, "");
    throw configFailure([{ severity: "error", code: "config.bad_pool", file: configFile, ...origin, path, message: said, fix }], error);
  }
}

/** Settings that are not applied yet, and how their files looked before they were read. */
interface Unsure {
  readonly settings: Settings;
  readonly looks: FileLooks;
}

/** Takes what the config says now, as a whole or not at all. */
export class Reload {
  readonly #parts: ReloadParts;
  readonly #agents: AgentRegistry;
  readonly #applied: () => Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();
  /** What is wrong with the files as they are, once it was told. */
  #trouble: string | undefined;

  /** `applied` is called after each new revision is everybody's. */
  constructor(parts: ReloadParts, agents: AgentRegistry, applied: () => Promise<unknown>) {
    this.#parts = parts;
    this.#agents = agents;
    this.#applied = applied;
  }

  /** Resolves when what the files say is applied; refuses, and changes nothing, when it cannot be. */
  now(): Promise<void> {
    return this.#take();
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
      const { looks, load } = this.#parts;
      await this.#apply(known?.looks === looks() ? known.settings : await load());
    });
  }

  /** Takes what the files say, unless it breaks an agent that was sound: then it answers what that is. */
  #unlessBroken(): Promise<Unsure | undefined> {
    return this.#inTurn(async () => {
      const looks = this.#parts.looks();
      const settings = await this.#parts.load();
      const { quarantined } = this.#agents.current.settings;
      if ([...settings.quarantined.keys()].some((id) => !quarantined.has(id))) return { settings, looks };
      await this.#apply(settings);
    });
  }

  /** One after the other. */
  #inTurn<T>(body: () => Promise<T>): Promise<T> {
    const next = this.#last.then(body);
    this.#last = next.catch(() => {});
    return next;
  }

  async #apply(settings: Settings): Promise<void> {
    const { log } = this.#parts;
    const before = this.#agents.current;
    refuseEmptied(settings, before.settings);
    const changes = changesBetween(before.settings, settings);
    const sameText = before.settings.configHash === settings.configHash;
    if (sameText && changes.length === 0) {
      if (this.#trouble !== undefined) log.info("the config is as it was before", { revision: before.number });
      this.#trouble = undefined;
      return;
    }
    const told = changes.length > 0 ? changes : ["nothing but words and order"];
    const next = await storeRevision(this.#parts, settings, told, sameText);
    this.#trouble = undefined;
    this.#agents.apply(next);
    log.info("the config was applied", { revision: next.number, changes: told.join("; ") });
    tellQuarantined(log, settings, before.settings);
    tellWarnings(log, settings, before.settings);
    if (settings.modelKeys.localModel !== before.settings.modelKeys.localModel) tellDefault(log, settings);
    await this.#applied();
  }

  #postpone(failure: Failure): false {
    const { code, message } = failure;
    if (this.#trouble !== message)
      this.#parts.log.error("the config cannot be applied yet; the one before goes on", { code, error: message });
    this.#trouble = message;
    return false;
  }

  async #reject(failure: Failure): Promise<true> {
    const { store, revisions, node, log, configFile } = this.#parts;
    if (this.#trouble === failure.message) return true;
    this.#trouble = failure.message;
    const problems = (failure.details.problems ?? []) as readonly ConfigProblem[];
    const told = problems.length > 0 ? problems.map(inWordsWithFix) : [`${failure.message} ${failure.hint}`];
    log.error("the config was rejected; the one before goes on", {
      revision: this.#agents.current.number,
      problems: told.join("; "),
    });
    const entry = { hash: hashOf(configFile), state: "rejected" as const, node, text: "", changes: [failure.message], problems };
    await store
      .transact("reject config", (tx) => revisions.recordIn(tx, entry, true), "locked")
      .catch((error: unknown) => log.warn("the rejection could not be stored", { code: asFailure(error).code }));
    return true;
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

/** Loudly, and each by name: the others run on. */
export function tellQuarantined(log: Log, { quarantined }: Settings, before?: Settings): void {
  for (const [agent, problems] of quarantined) {
    const told = problems.map(inWordsWithFix).join("; ");
    if (told === before?.quarantined.get(agent)?.map(inWordsWithFix).join("; ")) continue;
    log.error("an agent is quarantined: its section of the config is broken; the others go on", { agent, problems: told });
  }
}

/** What can hardly be meant; nothing is refused for it. */
export function tellWarnings(log: Log, { warnings }: Settings, before?: Settings): void {
  const told = new Set(before?.warnings.map(inWordsWithFix));
  for (const problem of warnings)
    if (!told.has(inWordsWithFix(problem))) log.warn("the config can hardly be meant so", { problem: inWordsWithFix(problem) });
}

function hashOf(file: string): string {
  try {
    return sha256(readFileSync(file, "utf8"));
  } catch {
    return "";
  }
}

function inWordsWithFix(problem: ConfigProblem): string {
  return `${inWords(problem)}${problem.fix === "" ? "" : ` ${problem.fix}`}`;
}
