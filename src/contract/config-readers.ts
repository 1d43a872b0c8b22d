/** What a key of the config is for, and who acts on it. */
export interface ConfigReader {
  readonly means: string;
  /** The rooms that read it in a running daemon. */
  readonly readBy: readonly string[];
}

const read = (means: string, ...readBy: string[]): ConfigReader => ({ means, readBy });

/** What an agent says for itself, and all agents together where it does not. */
const inherited = {
  model: read(
    "The model that answers, as <provider>/<model>; of a list, the next where one cannot.",
    "abilities/models",
    "drivers/dispatch",
    "drivers/intake",
    "daemon",
  ),
  max_steps: read("How often a turn may ask its model before it must end.", "drivers/dispatch"),
  personality: read("What the model is told about itself.", "records/agents"),
  tools: read("What may be called: a profile, a list, or {profile, also_allow, allow, deny, ask}.", "deciders/policy"),
  budget: read("How much may be spent.", "records/usage"),
  sandbox: read("Where programs run: auto, bubblewrap or none.", "abilities/tools", "records/workspaces"),
  "sandbox.network": read("What programs reach: none, guarded (the public web) or full.", "abilities/tools"),
  dm_scope: read("Which private chats share a conversation.", "deciders/routing"),
  group_scope: read("Whether everybody in a group shares a conversation.", "deciders/routing"),
  memory_scope: read("What shares a memory: the agent, a chat or a topic.", "abilities/tools", "records/memory"),
  workspace_scope: read("What shares a workspace: the agent, a chat or a topic.", "records/workspaces"),
  retention: read("How long tasks are kept after their end; for ever where nothing is said.", "daemon"),
  nodes: read('The nodes whose files it works on, by name or label; "*": any, they share them.', "deciders/placement"),
};

const below = (prefix: string, keys: Readonly<Record<string, ConfigReader>>): Record<string, ConfigReader> =>
  Object.fromEntries(Object.entries(keys).map(([key, reader]) => [`${prefix}.${key}`, reader]));

/**
 * Every key, once. `*` is any name; a key stands for what is below it too, unless that has a line of its own.
 * A test compares this with the schema, and with what a running daemon reads.
 */
export const CONFIG_READERS: Readonly<Record<string, ConfigReader>> = {
  ...inherited,
  "subagent.model": read("The model of one-off children.", "abilities/tools"),
  unrouted: read("What becomes of a message that no binding takes: default or refuse.", "deciders/routing"),
  owners: read("Who may approve, pair and command in chats, as <platform>:<sender id>.", "drivers/intake", "drivers/dispatch", "turns"),
  "identities.*": read("The same person on several platforms.", "deciders/routing"),
  "providers.*": read("A provider of models: its type, address and key.", "abilities/models"),
  "prices.*": read("What a model costs, in US dollars for a million tokens.", "abilities/models"),
  "limits.turns": read("Turns at once on this node.", "daemon"),
  "limits.waiting": read("Messages that may wait for their turn.", "records/sessions"),
  "limits.waiting_per_agent": read("Messages that may wait for one agent.", "records/sessions"),
  "limits.waiting_per_chat": read("Messages that may wait in one conversation.", "records/sessions"),
  "web.search": read("Who is asked by web_search.", "abilities/tools"),
  "web.private_hosts": read("Private hosts that web_fetch may ask.", "abilities/tools"),
  "agents.*.default": read("Answers what no binding takes.", "deciders/routing"),
  "agents.*.state": read(
    "active, paused or archived; `guildhall agents` writes it.",
    "records/agents",
    "records/access",
    "drivers/intake",
    "deciders/policy",
    "edges/a2a",
    "acts",
  ),
  ...below("agents.*", inherited),
  "agents.*.weight": read("Its share where agents wait for each other.", "acts", "drivers/intake"),
  "agents.*.roles": read(
    "By which mail to role:<role> reaches it.",
    "records/access",
    "records/mailbox",
    "acts",
    "abilities/tools",
    "drivers/dispatch",
    "edges/a2a",
  ),
  "agents.*.shared_paths": read("Folders beside its workspace.", "records/workspaces"),
  "agents.*.subagents.model": read("The model of its one-off children.", "abilities/tools"),
  "agents.*.subagents.max_depth": read("How deep tasks go that it stands above; a person's message is at 0.", "acts"),
  "agents.*.subagents.max_children": read("Tasks of one turn that may be open at once.", "acts"),
  "agents.*.subagents.agents": read("Whom it may delegate to by name, and with whose rights.", "deciders/policy"),
  "agents.*.sees": read("Other agents whose tasks and sessions it may search.", "records/sessions", "records/tasks"),
  "agents.*.guests": read("Outside agents that may give it tasks.", "acts"),
  "agents.*.mcp.*": read("An MCP server whose tools it may call.", "abilities/tools"),
  "agents.*.env.*": read("A secret of this agent alone.", "records/workspaces"),
  bindings: read("Which agent answers where; the most specific binding wins.", "deciders/routing"),
  "channels.*": read("Accounts on a chat platform: who we are there, whom we listen to, how replies leave.", "edges/channels"),
  "pools.*": read("Memory that agents share.", "records/pools"),
  "a2a.agents": read("Agents that programs elsewhere may ask by A2A.", "edges/a2a", "daemon"),
  "a2a.url": read("Where others reach this daemon, behind a proxy.", "edges/a2a"),
  "a2a.max_depth": read("How deep what others ask for may be delegated further.", "edges/a2a"),
  "a2a.max_open": read("Tasks of one caller that may be open at once.", "edges/a2a"),
  "peers.*.url": read("An agent elsewhere, delegated to as peer:<name>.", "abilities/peers"),
  "peers.*.token": read("The token that it wants.", "abilities/peers"),
  "peers.*.give_up_after": read("How long it is asked again while it does not answer.", "drivers/dispatch"),
  store: read("Where everything is kept: sqlite, or postgres://….", "settings"),
  "server.host": read("The address to listen on.", "daemon"),
  "server.port": read("The port to listen on; 0 for a free one.", "daemon"),
};

/** The line for a key, or for the nearest thing around it that has one. */
export function readerOf(path: readonly (string | number)[]): ConfigReader | undefined {
  const keys = path.filter((part) => typeof part === "string");
  for (let length = keys.length; length > 0; length--) {
    const found = Object.entries(CONFIG_READERS).find(([pattern]) => matches(pattern, keys.slice(0, length)));
    if (found) return found[1];
  }
  return undefined;
}

/** The lines for whatever may stand below a key. */
export function readersBelow(path: readonly (string | number)[]): ConfigReader[] {
  const keys = path.filter((part) => typeof part === "string");
  const below = Object.entries(CONFIG_READERS).filter(([pattern]) => matches(pattern.split(".").slice(0, keys.length).join("."), keys));
  return below.map(([, reader]) => reader);
}

function matches(pattern: string, keys: readonly string[]): boolean {
  const parts = pattern.split(".");
  return parts.length === keys.length && parts.every((part, index) => part === "*" || part === keys[index]);
}
