import { Secret } from "../src/contract/secret.ts";
import type { ObserveConfig } from "../src/daemon/store-revision.ts";
import type { Agent } from "../src/records/agents/agent.ts";
import { roomOf } from "./architecture.ts";

/** Rooms that are asked by others: what they read, their caller reads. So it is with where a shared path leads. */
const ASKED_BY_OTHERS = ["contract", "kernel"];
/** Files that carry values from the config to agents, show them or compare them: nothing acts on what they read. */
const CARRYING =
  /^records\/agents\/(agent|agent-view|config-changes)\.ts$|^edges\/api\/serve\.ts$|^records\/sessions\/runs\.ts$|^settings\//;
/** What is read of agents rather than of the config they were made from stands below this. */
export const MADE_AGENT = "agent";
/** Who reads for nobody. */
export const CARRIED = "carried";

/** Under which key of the config each field of an agent stands. */
const FIELDS: Readonly<Record<string, string>> = {
  model: "model",
  models: "model",
  personality: "personality",
  hasOwnPersonality: "personality",
  isDefault: "default",
  weight: "weight",
  maxSteps: "max_steps",
  roles: "roles",
  state: "state",
  sees: "sees",
  guests: "guests",
  retention: "retention",
  dmScope: "dm_scope",
  groupScope: "group_scope",
  memoryScope: "memory_scope",
  workspaceScope: "workspace_scope",
  sharedPaths: "shared_paths",
  env: "env",
  sandbox: "sandbox",
  budget: "budget",
  usd_per_day: "usd_per_day",
  usd_per_task: "usd_per_task",
  tokens_per_day: "tokens_per_day",
  tokens_per_task: "tokens_per_task",
  subagents: "subagents",
  maxDepth: "max_depth",
  maxChildren: "max_children",
  mcp: "mcp",
  nodes: "nodes",
};

/**
 * Notes which room reads which key of a config, and of the agents made from it. Copying values from the one to the others is no reading.
 */
export class ConfigRecorder implements ObserveConfig {
  /** Key, with its names and numbers left out, to the rooms that read it. */
  readonly reads = new Map<string, Set<string>>();

  readonly settings: ObserveConfig["settings"] = (settings) => ({ ...settings, config: this.#watched(settings.config, [], (key) => key) });

  readonly revision: ObserveConfig["revision"] = (revision) => {
    const agents = [...revision.agents].map(([id, agent]) => [id, this.#watchedAgent(agent)] as const);
    return { ...revision, agents: new Map(agents) };
  };

  #watchedAgent(agent: Agent): Agent {
    return this.#watched(agent, [MADE_AGENT], (key) => FIELDS[key] ?? null);
  }

  #watched<T extends object>(target: T, path: readonly string[], named: (key: string) => string | null): T {
    return new Proxy(target, {
      get: (object, key, receiver) => {
        const value = Reflect.get(object, key, receiver) as unknown;
        if (typeof key !== "string" || !Object.hasOwn(object, key)) return value;
        const name = named(key);
        // Computed from the config when it is asked for, and seen there.
        if (name === null) return value;
        const inner = Array.isArray(object) ? path : [...path, name];
        this.#note(inner);
        return isPlain(value) ? this.#watched(value, inner, named) : value;
      },
    });
  }

  #note(path: readonly string[]): void {
    const room = readingRoom();
    if (room === undefined) return;
    const key = path.join(".");
    const rooms = this.reads.get(key) ?? new Set();
    rooms.add(room);
    this.reads.set(key, rooms);
  }
}

function isPlain(value: unknown): value is object {
  return (
    typeof value === "object" &&
    value !== null &&
    !(value instanceof Secret) &&
    (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)
  );
}

const FRAME = /\/src\/([^:)?]+\.ts)/;

/** The nearest room on the stack that acts by itself. */
function readingRoom(): string | undefined {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 60;
  const frames = (new Error().stack ?? "").split("\n");
  Error.stackTraceLimit = limit;
  const files = frames.flatMap((frame) => FRAME.exec(frame)?.[1] ?? []);
  const file = files.find((one) => !ASKED_BY_OTHERS.includes(roomOf(one)) && one !== "settings/shared-paths.ts");
  return file === undefined || !CARRYING.test(file) ? file && roomOf(file) : CARRIED;
}
