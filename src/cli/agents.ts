import { AgentsClient } from "../client/agents.ts";
import type { AgentView } from "../contract/agents.ts";
import { PROFILE_NAMES } from "../contract/tools.ts";
import { bindingOf, type Place } from "./bind-place.ts";
import { type Applied, appliedInWords, untilApplied } from "./config-applied.ts";
import { findRunning } from "./connect.ts";
import { table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface AddOptions extends GlobalOptions {
  readonly model?: string;
  readonly tools?: string;
  readonly personality?: string;
  readonly default?: boolean;
  readonly role?: readonly string[];
  readonly bind: readonly Place[];
}

const STATES = { pause: "paused", resume: "active", archive: "archived" } as const;
const SHOWN_VALUE = 60;

export async function addAgent(id: string, options: AddOptions): Promise<number> {
  const { addAgentAt } = await import("../daemon/local-agents.ts");
  const { model, tools, personality, role } = options;
  const keys = {
    ...(model === undefined ? {} : { model }),
    ...(personality === undefined ? {} : { personality }),
    ...(role === undefined ? {} : { roles: role }),
    ...(tools === undefined ? {} : { tools: toolsOf(tools) }),
  };
  const added = await addAgentAt(options, { id, keys, isDefault: options.default === true, bindings: options.bind.map(bindingOf) });
  const applied = await untilApplied(options, added);
  if (options.json) print(JSON.stringify({ ...added, ...applied }));
  else {
    print(`${bold(id)} was added to ${added.file}; its folder is ${added.folder}`);
    if (added.returned) say(`there was an agent ${id} before: its files, conversations and tokens are this one's`);
    tell(applied);
  }
  return 0;
}

export async function listAgents(options: GlobalOptions): Promise<number> {
  const running = await findRunning(options);
  const { agents, revision } = running ? await new AgentsClient(running).list() : { agents: await fromFile(options), revision: null };
  if (options.json) print(JSON.stringify({ agents, revision }));
  else print(harmless(tableOf(agents, revision !== null)));
  return 0;
}

export async function showAgent(id: string, options: GlobalOptions): Promise<number> {
  const { showAgentAt } = await import("../daemon/local-agents.ts");
  const shown = await showAgentAt(options, id);
  if (options.json) {
    print(JSON.stringify(shown));
    return 0;
  }
  const rows = shown.values.map(({ key, value, from, line }) => [
    key,
    inShort(key === "tools" ? (value as object[]).map(rulesInShort).join("; ") : value),
    from === "default" ? "default" : line === null ? from : `${from === "own" ? "its own" : "everybody's"}, line ${line}`,
  ]);
  const bound = shown.bindings.map(({ platform, chat, line }) => [
    "bound",
    `${platform}${chat === null ? "" : `:${chat}`}`,
    `line ${line}`,
  ]);
  const head = `${bold(id)} is ${shown.state}${shown.default ? ", the default agent" : ""}${shown.because === null ? "" : `: ${shown.because}`}`;
  print(harmless([head, `folder ${shown.folder}`, `config ${shown.file ?? "none: everything is as by default"}`].join("\n")));
  print(harmless(`\n${table([...rows, ...bound])}`));
  return 0;
}

export async function changeState(verb: keyof typeof STATES, id: string, options: GlobalOptions): Promise<number> {
  const { setAgentStateAt } = await import("../daemon/local-agents.ts");
  const wanted = STATES[verb];
  const edited = await setAgentStateAt(options, id, wanted, await daemonOfFile(verb, id, options));
  const { revision } = edited;
  const applied: Applied = revision === null ? await untilApplied(options, edited) : { daemon: "applied", revision };
  if (options.json) print(JSON.stringify({ id, ...edited, ...applied }));
  else {
    print(`${bold(id)} is ${edited.state}${edited.changed ? "" : ", as before"}`);
    if (edited.state !== wanted) say(harmless(`it will be ${wanted} once this is corrected: ${edited.because}`));
    tell(applied);
  }
  return 0;
}

/** Null: none runs, or it reads another file, or it is not known which. */
async function daemonOfFile(verb: keyof typeof STATES, id: string, options: GlobalOptions) {
  const running = await findRunning(options);
  if (!running) return null;
  const client = new AgentsClient(running);
  const { configFileAt } = await import("../daemon/local-agents.ts");
  const seen = await client.revisions(1).catch(() => null);
  const setState = async (): Promise<number> => {
    await client.setState(id, verb);
    return (await client.revisions(1)).current.number;
  };
  return seen?.current.file === configFileAt(options) ? { setState } : null;
}

/** Only a daemon runs turns. */
export async function restartAgent(id: string, options: GlobalOptions): Promise<number> {
  const running = await findRunning(options);
  if (!running) {
    const { showAgentAt } = await import("../daemon/local-agents.ts");
    const { state } = await showAgentAt(options, id);
    if (options.json) print(JSON.stringify({ id, state, restarted: [], daemon: "not running" }));
    else print(`no daemon runs on this home: ${id} has nothing to restart`);
    return 0;
  }
  const agent = await new AgentsClient(running).restart(id);
  const count = agent.restarted.length;
  if (options.json) print(JSON.stringify({ ...agent, daemon: "applied" }));
  else print(`${bold(id)}: ${count === 0 ? "nothing was running" : count === 1 ? "1 turn begins again" : `${count} turns begin again`}`);
  return 0;
}

function tell(applied: Applied): void {
  const words = appliedInWords(applied);
  if (words !== null) say(harmless(words));
}

async function fromFile(options: GlobalOptions): Promise<AgentView[]> {
  return (await import("../daemon/local-agents.ts")).listAgentsAt(options);
}

function tableOf(agents: readonly AgentView[], live: boolean): string {
  const rows = agents.map(({ id, model, state, because, problem, running, waiting, roles, ...agent }) => [
    id,
    agent.default ? `${state}, default` : state,
    model,
    live ? `${running} running, ${waiting} waiting` : "",
    roles.join(","),
    because ?? (problem === null ? "" : `cannot answer: ${problem}`),
  ]);
  return table([["agent", "state", "model", live ? "turns" : "", "roles", ""], ...rows]);
}

function inShort(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  const line = text.replace(/\s+/g, " ");
  return value === null ? "none" : line.length <= SHOWN_VALUE ? line : `${line.slice(0, SHOWN_VALUE)}…`;
}

/** `coding, deny terminal`: what a set of rules says beyond saying nothing. */
function rulesInShort(rules: object): string {
  const { profile, ...lists } = rules as { profile: string } & Record<string, readonly string[] | null>;
  // An empty list of what is allowed allows nothing; any other empty list says nothing.
  if (lists.allow?.length === 0) return "nothing";
  const said = Object.entries(lists).flatMap(([key, list]) => (list && list.length > 0 ? [`${key} ${list.join(" ")}`] : []));
  return [profile, ...said].join(", ");
}

/** A profile's name, else a list of tools. */
function toolsOf(text: string): string | string[] {
  if ((PROFILE_NAMES as readonly string[]).includes(text)) return text;
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
