import fc from "fast-check";
import type { Config } from "../src/contract/config.ts";
import type { Verdict } from "../src/contract/policy.ts";

/**
 * Who may call what, straight from contract.md §3, as naively as it can be written: sets of names over a small world of tools. Shares no code
 * and no tables with the decider.
 */
const GROUPS: Record<string, string> = {
  fs: "file_read file_write file_edit file_search file_list",
  runtime: "terminal process",
  web: "web_fetch web_search",
  memory: "memory_save memory_search memory_forget session_search",
  context: "context_read context_write context_list context_watch",
  delegation: "delegate_task agent_delegate task_check task_cancel task_search agent_list",
  coordination: "claim claim_renew claim_release mail_send mail_read mail_ack propose vote proposal_check",
};
const OTHER = "todo clarify schedule message_send image_generate";
const SERVERS = "mcp__files__read mcp__files__write-all mcp__git__log";
export const WORLD: readonly string[] = [...Object.values(GROUPS), OTHER, SERVERS].flatMap((names) => names.split(" "));
const MCP = { files: { command: "f" }, git: { command: "g" } };

const MINIMAL = "clarify todo";
const MESSAGING = `${MINIMAL} group:memory group:web group:context mail_* message_send`;
const PROFILES: Record<string, string> = {
  minimal: MINIMAL,
  messaging: MESSAGING,
  coding: `${MESSAGING} group:fs group:runtime group:coordination group:delegation`,
  full: "*",
};

const meanings = new Map<string, Set<string>>();
function standsFor(entry: string): Set<string> {
  const known = meanings.get(entry) ?? lookedUp(entry);
  meanings.set(entry, known);
  return known;
}

function lookedUp(entry: string): Set<string> {
  if (entry === "web_extract") return new Set(["web_fetch"]);
  if (entry === "memory") return standsFor("group:memory");
  if (entry.startsWith("group:")) return new Set((GROUPS[entry.slice(6)] as string).split(" "));
  const pattern = new RegExp(`^${entry.split(/\*+/).join(".*")}$`);
  return new Set(WORLD.filter((tool) => pattern.test(tool)));
}

type Written = NonNullable<Config["tools"]>;

export function byRules(rules: Written | undefined, tool: string): Verdict {
  const { profile, also_allow, allow, deny, ask } = rules ?? { profile: "full", also_allow: [], allow: null, deny: [], ask: [] };
  const named = (entries: readonly string[]): boolean => entries.some((entry) => standsFor(entry).has(tool));
  const isInSet =
    (named((PROFILES[profile] as string).split(" ")) || named(also_allow)) && (allow === null || named(allow)) && !named(deny);
  if (!isInSet) return "deny";
  return named(ask) ? "ask" : "allow";
}

const RANK: Record<Verdict, number> = { deny: 0, ask: 1, allow: 2 };
export const rank = (verdict: Verdict): number => RANK[verdict];
export const strictest = (...verdicts: Verdict[]): Verdict => verdicts.reduce((a, b) => (RANK[a] <= RANK[b] ? a : b));

/** What the config has written for an agent, whether or not it stands still. */
export function byWriting(config: Config, agent: string, tool: string): Verdict {
  const own = Object.hasOwn(config.agents, agent) ? config.agents[agent] : undefined;
  if (!own || config.tools?.deny.some((entry) => standsFor(entry).has(tool))) return "deny";
  return byRules(own.tools ?? config.tools, tool);
}

/** What an agent may call now: one that stands still nothing, and of servers only its own. */
export function byConfig(config: Config, agent: string, tool: string): Verdict {
  const own = Object.hasOwn(config.agents, agent) ? config.agents[agent] : undefined;
  const [prefix, server] = tool.split("__");
  if (own?.state !== "active" || (prefix === "mcp" && !Object.keys(own.mcp).includes(server as string))) return "deny";
  return byWriting(config, agent, tool);
}

export function edge(config: Config, from: string, to: string): "own" | "narrowed" | null {
  const caller = Object.hasOwn(config.agents, from) ? config.agents[from] : undefined;
  if (caller?.state !== "active") return null;
  return caller.subagents.agents.find(({ id }) => id === to)?.rights ?? null;
}

/** A run and what led to it. */
export interface Chain {
  readonly agent: string;
  /** The config when it began. */
  readonly began: Config;
  readonly steps: readonly Written[];
  readonly caller: Chain | null;
  readonly rights: "own" | "narrowed" | null;
}

/** Its agent's rules as it began and as they are now, its steps', and its caller's unless it has its own rights, then and now. */
export function byChain(chain: Chain, now: Config, tool: string): Verdict {
  const { agent, began, steps, caller, rights } = chain;
  const own = strictest(byWriting(began, agent, tool), byConfig(now, agent, tool), ...steps.map((rules) => byRules(rules, tool)));
  if (isDead(chain)) return "deny";
  if (!caller) return own;
  if (rights === "own" && edge(now, caller.agent, agent) === "own") return own;
  return strictest(own, byChain(caller, now, tool));
}

/** Something along it was never allowed to begin, or was not there. */
function isDead({ agent, began, caller, rights }: Chain): boolean {
  return !Object.hasOwn(began.agents, agent) || (caller !== null && (rights === null || isDead(caller)));
}

const wildcard = fc
  .tuple(fc.constantFrom(...WORLD), fc.nat(20), fc.nat(20))
  .map(([name, from, to]) => `${name.slice(0, Math.min(from, to))}*${name.slice(Math.max(from, to))}`);
const anyEntry = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...WORLD) },
  { weight: 3, arbitrary: fc.constantFrom(...Object.keys(GROUPS).map((group) => `group:${group}`), "web_extract", "memory") },
  { weight: 2, arbitrary: wildcard },
  { weight: 1, arbitrary: fc.constantFrom("*", "mcp__*", "mcp__files__*", "nothing_like_this") },
);
const entries = fc.array(anyEntry, { maxLength: 5 });
const profile = fc.constantFrom("minimal", "messaging", "coding", "full");
const long = { profile, also_allow: entries, deny: entries, ask: entries };
export const anyRules = fc.oneof(
  { weight: 2, arbitrary: profile },
  { weight: 1, arbitrary: entries },
  { weight: 3, arbitrary: fc.record(long, { requiredKeys: ["ask"] }) },
  { weight: 1, arbitrary: fc.record({ ...long, allow: fc.array(anyEntry, { maxLength: 12 }) }, { requiredKeys: ["allow"] }) },
);

const NAMES = ["main", "ann", "bob", "cy"];
export const anyName = fc.constantFrom(...NAMES);
const anyDelegate = fc.oneof(anyName, fc.record({ id: anyName, rights: fc.constantFrom("own", "narrowed") }));
const anyAgent = fc.record(
  {
    tools: anyRules,
    state: fc.constantFrom("active", "active", "active", "active", "active", "paused", "archived"),
    subagents: fc.record({
      agents: fc.uniqueArray(anyDelegate, {
        maxLength: 4,
        selector: (delegate) => (typeof delegate === "string" ? delegate : delegate.id),
      }),
    }),
    mcp: fc.constantFrom({}, { files: MCP.files }),
  },
  { requiredKeys: ["subagents"] },
);
/** As it would be written; some agents are missing. */
export const anyConfig = fc
  .record({ tools: fc.option(anyRules, { nil: undefined }), agents: fc.array(fc.tuple(anyName, anyAgent), { minLength: 2, maxLength: 8 }) })
  .map(({ tools, agents }) => {
    const all = { main: {}, ...Object.fromEntries(agents) };
    return {
      ...(tools === undefined ? {} : { tools }),
      agents: Object.fromEntries(Object.entries(all).map(([id, agent]) => [id, { mcp: MCP, ...agent }])),
    };
  });
