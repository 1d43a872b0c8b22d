import { readFileSync } from "node:fs";
import { join } from "node:path";
import { wakeHeldTurns } from "../acts/hold-turn.ts";
import { restartTurns } from "../acts/restart-turns.ts";
import type { AgentControl } from "../edges/api/agents-routes.ts";
import { sha256 } from "../kernel/canonical-json.ts";
import { asFailure, Failure, isFailure } from "../kernel/failure.ts";
import type { Agent } from "../records/agents/agent.ts";
import { editsToSetState, refuseUnknown } from "../records/agents/agent-edits.ts";
import { detailsOf, openTurns, type ProblemOf, viewAll, viewOf } from "../records/agents/agent-view.ts";
import { appliedAfter, ConfigRevisions } from "../records/agents/config-revisions.ts";
import { Personalities } from "../records/agents/personality.ts";
import { AgentRegistry } from "../records/agents/registry.ts";
import { standstillOf } from "../records/agents/standstill.ts";
import { configFileOf, editConfig } from "../settings/edit-config.ts";
import { givenSettings } from "../settings/given-settings.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { type LoadOptions, loadSettings, loadSettingsAside, type Settings } from "../settings/load-settings.ts";
import { type FileLooks, looksOf, watchFiles } from "../settings/watch-files.ts";
import type { SqlFragment } from "../store/sql.ts";
import { type FirstFile, refuseEmptied } from "./file-here.ts";
import { firstRevision, rescuedRevision, rescueSettings } from "./first-revision.ts";
import { tellDefault } from "./local-models.ts";
import { Reload, type ReloadParts } from "./reload.ts";
import { tellQuarantined, tellWarnings } from "./tell-config.ts";

/** Where a config comes from: a file, or the program around us. */
export interface ConfigSource extends Whereabouts {
  /** Instead of a file. It never changes. */
  readonly given?: object | undefined;
}

const HANDED_IN = { hint: "Change it where the program makes it, and start it again." };
/** Without a hint there is another who looks. */
const HINTS_AT_MOST_MS = 60_000;

/** The files whose change is a reason to look again. */
function watchedFiles(where: ConfigSource): string[] {
  return where.given ? [] : [configFileOf(where, process.env), join(homeOf(where, process.env), ".env")];
}

/** Settings to begin with, and how their files looked just before they were read. */
export interface Watched {
  readonly settings: Settings;
  readonly looks: FileLooks;
  /** The file cannot be used, and these are the settings that are stored. */
  readonly trouble: Failure | null;
}

export async function loadWatched(where: ConfigSource, known: Omit<LoadOptions, "text" | "own"> = {}): Promise<Watched> {
  const looks = looksOf(watchedFiles(where));
  const { given } = where;
  if (given) return { settings: givenSettings(given, where, process.env, known), looks, trouble: null };
  try {
    return { settings: loadSettings(where, process.env, known), looks, trouble: null };
  } catch (error) {
    const settings = isFailure(error, "config.invalid") ? await rescueSettings(where, process.env, known) : undefined;
    if (!settings) throw error;
    return { settings, looks, trouble: asFailure(error) };
  }
}

type TenantParts = Omit<ReloadParts, "revisions" | "load" | "read" | "looks" | "configFile">;

/** The agents of this daemon: as the config says, and as it says next. */
export class Tenants {
  readonly agents: AgentRegistry;
  readonly personalities: Personalities;
  readonly #where: ConfigSource;
  readonly #looks: FileLooks;
  readonly #parts: ReloadParts;
  readonly #reload: Reload;
  readonly #watching = new AbortController();
  #tell: () => void = () => {};

  private constructor(where: ConfigSource, looks: FileLooks, parts: ReloadParts, agents: AgentRegistry, file: FirstFile, home: string) {
    this.#where = where;
    this.#looks = looks;
    this.#parts = parts;
    this.agents = agents;
    this.personalities = new Personalities(home);
    this.#reload = new Reload(parts, agents, file, () => {
      this.#tell();
      return this.#wakeSoon();
    });
  }

  static async open(where: ConfigSource, { settings, looks, trouble }: Watched, given: TenantParts): Promise<Tenants> {
    const known = { knownTools: given.toolNames ?? [], knownChannels: given.platforms ?? [] };
    const found = (settings: Settings): Settings => {
      const observed = given.observe?.settings(settings) ?? settings;
      return given.local?.in(observed) ?? observed;
    };
    const parts: ReloadParts = {
      ...given,
      revisions: new ConfigRevisions(given.store),
      configFile: configFileOf(where, process.env),
      load: async () =>
        found(where.given ? givenSettings(where.given, where, process.env, known) : await loadSettingsAside(where, process.env, known)),
      read: async (text, own) => {
        if (where.given) throw new Failure("config.invalid", "the config of this node is handed in by the program around it", HANDED_IN);
        return found(await loadSettingsAside(where, process.env, { ...known, text, own }));
      },
      looks: () => looksOf(watchedFiles(where)),
    };
    const first = trouble
      ? await rescuedRevision(parts, settings, trouble)
      : await firstRevision(parts, settings, where.given !== undefined);
    const { settings: begun } = first.revision;
    tellQuarantined(given.log, begun);
    tellWarnings(given.log, begun);
    tellDefault(given.log, begun);
    const tenants = new Tenants(where, looks, parts, new AgentRegistry(first.revision), first.file, begun.home);
    // What cannot be used here is known before anybody asks.
    await tenants.follow();
    return tenants;
  }

  /** Why this node runs on another config than the newest, or than its file; null where it does not. */
  get problem(): string | null {
    return this.#reload.problem;
  }

  /** Whether there may be something to follow. */
  newer(): SqlFragment {
    return appliedAfter(this.#reload.known);
  }

  /** Takes what another node has applied. Every node asks every second; a hint makes it sooner. */
  follow(): Promise<void> {
    return this.#reload.follow();
  }

  /** What was found on this machine meanwhile is the default from now on. */
  async takeUpLocal(found: Promise<string | null>): Promise<void> {
    const name = await found;
    if (name === null || this.agents.current.settings.modelKeys.localModel === name || this.#watching.signal.aborted) return;
    await this.#reload
      .now()
      .catch((error: unknown) =>
        this.#parts.log.warn("the model on this machine was not taken up", { model: name, code: asFailure(error).code }),
      );
  }

  /** From now on a change of the files is noticed, and one that another node makes. `tell` is called when something is different here. */
  watch(tell: () => void): void {
    this.#tell = tell;
    void this.#heed();
    if (this.#where.given) return;
    const { signal } = this.#watching;
    void watchFiles(watchedFiles(this.#where), this.#looks, () => this.#reload.changed(signal), signal);
  }

  stop(): void {
    this.#watching.abort();
  }

  /** Turns whose agent no longer waits. Every node asks every second, so that none is forgotten. */
  wake(): Promise<number> {
    const { number, agents, settings } = this.agents.current;
    const { store, reached, revisions } = this.#parts;
    // Another node may have gone to other words and back while this one did not look: then this one knows the newest, by an older number.
    let isNewest: Promise<boolean> | undefined;
    const knowsAll = async (since: number): Promise<boolean> => {
      if (since <= number) return true;
      // Asked once for all that wait.
      isNewest ??= revisions.isNewest(settings.configHash);
      return isNewest;
    };
    const waits = async (id: string, since: number): Promise<boolean> =>
      standstillOf(agents.get(id))?.waits === true || !(await knowsAll(since));
    return wakeHeldTurns(store, waits, reached);
  }

  /** `letGo`: stops at once what was taken from this node. */
  control(letGo: () => Promise<void>, problemOf: ProblemOf = () => null): AgentControl {
    const { store, revisions } = this.#parts;
    const counts = () => openTurns(store.read);
    const view = async (id: string) => {
      const agent = this.#known(id);
      return viewOf(agent, await counts(), problemOf(agent));
    };
    return {
      list: async () => ({ agents: viewAll(this.agents.current, await counts(), problemOf), revision: this.agents.current.number }),
      details: async (id) => {
        const agent = this.#known(id);
        return detailsOf(agent, this.agents.current, await counts(), await this.personalities.of(agent), problemOf(agent));
      },
      setState: async (id, state) => {
        if (this.#where.given)
          throw new Failure(
            "config.unwritable",
            "the config was handed in by the program around the daemon, and stands in no file",
            HANDED_IN,
          );
        const decide = (now: Settings) => {
          refuseEmptied(now, this.agents.current.settings);
          return editsToSetState(now, id, state);
        };
        await this.#reload.edit((base) => editConfig(this.#where, process.env, decide, base));
        return view(id);
      },
      restart: async (id, by) => {
        // A file that somebody has just broken is no reason to leave an agent stuck.
        await this.#reload.now().catch((error: unknown) => {
          if (!isFailure(error, "config.invalid")) throw error;
        });
        this.#known(id);
        const restarted = await restartTurns(store, id, by.name);
        await letGo();
        return { ...(await view(id)), restarted };
      },
      revisions: async (limit) => {
        const { number, settings } = this.agents.current;
        const current = { number, hash: settings.configHash, file: this.#parts.configFile, problem: this.problem };
        return { current: { ...current, ...(await this.#fileNow()) }, revisions: await revisions.list(limit) };
      },
    };
  }

  /** What the file is among the revisions. */
  async #fileNow(): Promise<{ readonly file_state: "current" | "older" | "unknown" | "none"; readonly file_revision: number | null }> {
    const { settings, number } = this.agents.current;
    if (this.#where.given) return { file_state: "none", file_revision: null };
    let text: string;
    try {
      text = readFileSync(this.#parts.configFile, "utf8");
    } catch {
      return { file_state: "none", file_revision: null };
    }
    const hash = sha256(text);
    if (hash === settings.configHash) return { file_state: "current", file_revision: number };
    const older = await this.#parts.revisions.numberOf(hash);
    return { file_state: older === undefined ? "unknown" : "older", file_revision: older ?? null };
  }

  /** Hints only: whoever looks every second finds what was missed. */
  async #heed(): Promise<void> {
    const { store, log } = this.#parts;
    const { signal } = this.#watching;
    for (let seen = store.wake.version("config"); !signal.aborted; ) {
      await store.wake.wait("config", seen, HINTS_AT_MOST_MS, signal);
      seen = store.wake.version("config");
      if (!signal.aborted)
        await this.follow().catch((error: unknown) =>
          log.warn("the newest config could not be looked up; trying again", { code: asFailure(error).code }),
        );
    }
  }

  #known(id: string): Agent {
    const agent = this.agents.get(id);
    if (!agent) refuseUnknown(id, this.agents.current.settings);
    return agent as Agent;
  }

  async #wakeSoon(): Promise<void> {
    await this.wake().catch((error: unknown) =>
      this.#parts.log.warn("held turns could not be woken; trying again", { code: asFailure(error).code }),
    );
  }
}
