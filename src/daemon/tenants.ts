import { join } from "node:path";
import { wakeHeldTurns } from "../acts/hold-turn.ts";
import { restartTurns } from "../acts/restart-turns.ts";
import type { AgentControl } from "../edges/api/agents-routes.ts";
import { asFailure, Failure, isFailure } from "../kernel/failure.ts";
import type { Agent } from "../records/agents/agent.ts";
import { editsToSetState, refuseUnknown } from "../records/agents/agent-edits.ts";
import { detailsOf, openTurns, type ProblemOf, viewAll, viewOf } from "../records/agents/agent-view.ts";
import { ConfigRevisions } from "../records/agents/config-revisions.ts";
import { Personalities } from "../records/agents/personality.ts";
import { AgentRegistry } from "../records/agents/registry.ts";
import { standstillOf } from "../records/agents/standstill.ts";
import { configFileOf, editConfig } from "../settings/edit-config.ts";
import { givenSettings } from "../settings/given-settings.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { type LoadOptions, loadSettings, loadSettingsAside, type Settings } from "../settings/load-settings.ts";
import { type FileLooks, looksOf, watchFiles } from "../settings/watch-files.ts";
import { tellDefault } from "./local-models.ts";
import { Reload, type ReloadParts, refuseEmptied, storeRevision, tellQuarantined, tellWarnings } from "./reload.ts";

/** Where a config comes from: a file, or the program around us. */
export interface ConfigSource extends Whereabouts {
  /** Instead of a file. It never changes. */
  readonly given?: object | undefined;
}

/** The files whose change is a reason to look again. */
function watchedFiles(where: ConfigSource): string[] {
  return where.given ? [] : [configFileOf(where, process.env), join(homeOf(where, process.env), ".env")];
}

/** Reads the settings, and how their files looked just before. */
export function loadWatched(
  where: ConfigSource,
  known: Omit<LoadOptions, "text"> = {},
): { readonly settings: Settings; readonly looks: FileLooks } {
  const looks = looksOf(watchedFiles(where));
  const { given } = where;
  return {
    settings: given ? givenSettings(given, where, process.env, known) : loadSettings(where, process.env, known),
    looks,
  };
}

type TenantParts = Omit<ReloadParts, "revisions" | "load" | "looks" | "configFile">;

/** The agents of this daemon: as the config says, and as it says next. */
export class Tenants {
  readonly agents: AgentRegistry;
  readonly personalities: Personalities;
  readonly #where: ConfigSource;
  readonly #looks: FileLooks;
  readonly #parts: ReloadParts;
  readonly #reload: Reload;
  readonly #watching = new AbortController();

  private constructor(where: ConfigSource, looks: FileLooks, parts: ReloadParts, agents: AgentRegistry, home: string) {
    this.#where = where;
    this.#looks = looks;
    this.#parts = parts;
    this.agents = agents;
    this.personalities = new Personalities(home);
    this.#reload = new Reload(parts, agents, () => this.#wakeSoon());
  }

  /** `looks`: of the watched files, before the settings were read from them. */
  static async open(where: ConfigSource, looks: FileLooks, settings: Settings, given: TenantParts): Promise<Tenants> {
    const parts: ReloadParts = {
      ...given,
      revisions: new ConfigRevisions(given.store),
      configFile: configFileOf(where, process.env),
      load: async () => {
        const known = { knownTools: given.toolNames ?? [], knownChannels: given.platforms ?? [] };
        const settings = where.given
          ? givenSettings(where.given, where, process.env, known)
          : await loadSettingsAside(where, process.env, known);
        const observed = given.observe?.settings(settings) ?? settings;
        return given.local?.in(observed) ?? observed;
      },
      looks: () => looksOf(watchedFiles(where)),
    };
    const first = await storeRevision(parts, settings, ["as it was when the daemon started"]);
    tellQuarantined(given.log, settings);
    tellWarnings(given.log, settings);
    tellDefault(given.log, settings);
    return new Tenants(where, looks, parts, new AgentRegistry(first), settings.home);
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

  /** From now on a change of the files is noticed. */
  watch(): void {
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
    const knowsAll = async (since: number): Promise<boolean> => since <= number || revisions.isNewest(settings.configHash);
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
          throw new Failure("config.unwritable", "the config was handed in by the program around the daemon, and stands in no file", {
            hint: "Change it where the program makes it, and start it again.",
          });
        await editConfig(this.#where, process.env, (now) => {
          refuseEmptied(now, this.agents.current.settings);
          return editsToSetState(now, id, state);
        });
        await this.#reload.now();
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
        return { current: { number, hash: settings.configHash, file: this.#parts.configFile }, revisions: await revisions.list(limit) };
      },
    };
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
