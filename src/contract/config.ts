import { z } from "zod";
import { a2aConfig, peersConfig } from "./a2a.ts";
import { binding } from "./bindings.ts";
import { channelsConfig } from "./channels.ts";
import { nodeLabel } from "./nodes.ts";
import { poolsConfig } from "./pools.ts";
import { secret } from "./secret.ts";
import { duration, identifier } from "./text.ts";
import { RESERVED_NAMES } from "./tokens.ts";
import { toolRules } from "./tools.ts";

/** No file may have them as keys, so that nothing which reads one is led to what every object has. */
const NO_KEYS: readonly string[] = ["constructor", "prototype"];
/** Ids become folder names and parts of session keys: no upper case, so that two never share a folder, and no look-alikes. */
export const agentId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "an agent's id is 1 to 64 lowercase letters, digits, _ and -, and begins with a letter or digit")
  .refine((id) => ![...RESERVED_NAMES, ...NO_KEYS].includes(id), "this name is reserved; an agent needs another");
const roleName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "a role is 1 to 64 letters, digits, _ and -");
export const modelName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]*\/\S+$/, "expected <provider>/<model>, for example offline/demo")
  .max(200);
/** One, or several of which the next is asked when one cannot answer. */
const modelNames = z
  .union([modelName, z.array(modelName).min(1).max(5)])
  .transform((written): readonly [string, ...string[]] => (typeof written === "string" ? [written] : (written as [string, ...string[]])));
const personality = z.string().max(100_000);
const envName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,199}$/, "the name of a variable is letters, digits and _");
/** `<platform>:<sender id>`, as the platform knows the person. */
const personId = z.string().regex(/^[a-z0-9][a-z0-9_-]*:.{1,256}$/u, "expected <platform>:<sender id>, for example telegram:7");
const url = z.url({ protocol: /^https?$/, error: "expected an address such as http://127.0.0.1:8000" });

export const DM_SCOPES = ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"] as const;
export type DmScope = (typeof DM_SCOPES)[number];
export const GROUP_SCOPES = ["chat", "per-peer"] as const;
export type GroupScope = (typeof GROUP_SCOPES)[number];
export const PLACE_SCOPES = ["agent", "chat", "topic"] as const;
export type PlaceScope = (typeof PLACE_SCOPES)[number];
const SANDBOXES = ["auto", "bubblewrap", "none"] as const;
/** What programs in a sandbox reach: nothing, the public web through our guard, or whatever this machine reaches. */
export const NETWORKS = ["none", "guarded", "full"] as const;
/** `auto`, or `{ kind: auto, network: none }`. Without a word about the network it follows from the right to call web_fetch. */
const sandbox = z
  .union([z.enum(SANDBOXES), z.strictObject({ kind: z.enum(SANDBOXES).default("auto"), network: z.enum(NETWORKS).optional() })])
  .transform((written) => (typeof written === "string" ? { kind: written, network: undefined } : written));

/** `"*"`, or a list of names and labels: whatever is a name could be a label. */
const nodeNames = z
  .union([z.literal("*"), z.array(nodeLabel).min(1).max(100)])
  .transform((written): readonly string[] => (written === "*" ? ["*"] : written));

const budget = z.strictObject({
  usd_per_day: z.number().positive().optional(),
  usd_per_task: z.number().positive().optional(),
  tokens_per_day: z.int().positive().optional(),
  tokens_per_task: z.int().positive().optional(),
});

/** What an agent inherits where it says nothing itself. */
const inherited = {
  model: modelNames.optional(),
  personality: personality.optional(),
  tools: toolRules.optional(),
  budget: budget.optional(),
  sandbox: sandbox.optional(),
  /** How often a turn may ask its model before it must end. */
  max_steps: z.int().min(1).max(1_000).optional(),
  dm_scope: z.enum(DM_SCOPES).optional(),
  group_scope: z.enum(GROUP_SCOPES).optional(),
  memory_scope: z.enum(PLACE_SCOPES).optional(),
  workspace_scope: z.enum(PLACE_SCOPES).optional(),
  /** How long a task is kept after its end; absent: for ever. */
  retention: duration.optional(),
  /** The nodes that have its files; "*": all of them, which share them. Absent: the one that has taken its first turn, if it touches files. */
  nodes: nodeNames.optional(),
};

const sharedPath = z.strictObject({
  path: z.string().min(1).max(4_096),
  mode: z.enum(["ro", "rw"]).default("ro"),
  /** Its name below `shared/` in the workspace; the last part of the path when absent. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "expected letters, digits, dots, _ and -")
    .optional(),
});
export type SharedPath = z.output<typeof sharedPath>;

/** `[ops]`, or `[{ id: ops, rights: own }]`: only then does it keep rights that its caller lacks. */
const delegate = z
  .union([z.string(), z.strictObject({ id: z.string(), rights: z.enum(["narrowed", "own"]).default("narrowed") })])
  .transform((written) => (typeof written === "string" ? { id: written, rights: "narrowed" as const } : written));
const subagents = z.strictObject({
  model: modelName.optional(),
  max_depth: z.int().min(0).max(10).default(2),
  max_children: z.int().min(0).max(100).default(5),
  agents: z.array(delegate).max(1_000).default([]),
});

/** `"*"`, or a list of names. */
const someNames = z
  .union([z.literal("*"), z.array(z.string()).max(1_000)])
  .transform((written): readonly string[] => (written === "*" ? ["*"] : written));

/** Neither `__` nor `_` at the end: `mcp__<server>__<tool>` must have one reading. */
const mcpName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9-]|_(?!_|$)){0,31}$/, "a server's name is lowercase letters, digits, - and single _, and does not end in _");
/** What the tools of a server answer is somebody else's word, unless the operator says that it is to be trusted. */
const trusted = z.boolean().default(false);
const mcpServer = z.union([
  z.strictObject({
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    env: z.record(envName, secret).default({}),
    trusted,
  }),
  z.strictObject({ url, headers: z.record(z.string(), secret).default({}), trusted }),
]);

export const AGENT_STATES = ["active", "paused", "archived"] as const;

const agentKeys = z.strictObject({
  default: z.boolean().optional(),
  /** `guildhall agents pause|resume|archive` write it. */
  state: z.enum(AGENT_STATES).default("active"),
  ...inherited,
  roles: z.array(roleName).max(50).default([]),
  /** Its share where agents wait for each other: one with 2 gets twice as many turns as one with 1. */
  weight: z.number().min(0.01).max(100).default(1),
  shared_paths: z.array(sharedPath).max(100).default([]),
  subagents: subagents.prefault({}),
  sees: someNames.default([]),
  /** Outside agents that may give it tasks, by their names; "*": every one. */
  guests: someNames.default([]),
  mcp: z.record(mcpName, mcpServer).default({}),
  env: z.record(envName, secret).default({}),
});
export type AgentConfig = z.output<typeof agentKeys>;

/** `coder:` with nothing after it is an agent that inherits everything. */
const agentConfig = agentKeys.nullable().transform((agent): AgentConfig => agent ?? agentKeys.parse({}));

export const PROVIDER_TYPES = ["openai-compatible", "openai", "anthropic", "google", "openrouter", "ollama"] as const;
const provider = z.strictObject({
  /** Without it a well-known name is of its own type, and every other openai-compatible. */
  type: z.enum(PROVIDER_TYPES).optional(),
  base_url: url.optional(),
  api_key: secret.optional(),
});

/** US dollars for a million tokens. */
const price = z.strictObject({
  input: z.number().min(0),
  output: z.number().min(0),
  cached_input: z.number().min(0).optional(),
});
const limits = z.strictObject({
  /** Turns at once on this node. */
  turns: z.int().min(1).max(10_000).default(64),
  /** Messages that may wait for their turn, in all and for one agent: one more is refused with 429. */
  waiting: z.int().min(1).max(1_000_000).default(10_000),
  waiting_per_agent: z.int().min(1).max(1_000_000).default(1_000),
  /** Of one conversation: who floods it keeps nobody else waiting. */
  waiting_per_chat: z.int().min(1).max(1_000_000).default(100),
});
/** Who is asked by web_search: the first that is named here. */
const search = z.strictObject({ searxng: url.optional(), brave: secret.optional(), tavily: secret.optional() });
const web = z.strictObject({
  search: search.prefault({}),
  /** Hosts that web_fetch may ask although their address is a private one, as `host` or `host:port`. */
  private_hosts: z.array(z.string().min(1).max(300)).max(100).default([]),
});

/** The config as it is written and as it is read. Unknown keys are refused, so that none is ignored in silence. */
export const configSchema = z.strictObject({
  ...inherited,
  /** One-off children of `delegate_task`. */
  subagent: z.strictObject({ model: modelName.optional() }).prefault({}),
  unrouted: z.enum(["default", "refuse"]).default("default"),
  owners: z.array(personId).max(1_000).default([]),
  identities: z
    .record(identifier, z.array(personId).max(100))
    .superRefine((identities, context) => {
      const taken = new Map<string, string>();
      for (const [name, ids] of Object.entries(identities))
        for (const [index, id] of ids.entries()) {
          const other = taken.get(id);
          if (other !== undefined)
            context.addIssue({ code: "custom", path: [name, index], message: `"${id}" is linked to "${other}" already` });
          taken.set(id, name);
        }
    })
    .default({}),
  providers: z
    .record(z.string().regex(/^[a-z0-9][a-z0-9_-]*$/, "a provider's name is lowercase letters, digits, _ and -"), provider)
    .default({}),
  /** By `<provider>/<model>`, beside and before the prices that are built in. */
  prices: z.record(modelName, price).default({}),
  limits: limits.prefault({}),
  web: web.prefault({}),
  /** Which of them is the default, and that there is one, is checked where the file is read: there a mistake has a place. */
  agents: z.record(agentId, agentConfig).prefault({ main: {} }),
  bindings: z.array(binding).max(100_000).default([]),
  channels: channelsConfig.default({}),
  pools: poolsConfig.default({}),
  a2a: a2aConfig.prefault({}),
  peers: peersConfig.default({}),
  store: z
    .string()
    .regex(/^(sqlite|postgres(ql)?:\/\/.+)$/, "expected sqlite or postgres://…")
    .optional(),
  server: z.strictObject({ host: z.string().min(1).default("127.0.0.1"), port: z.int().min(0).max(65_535).default(4270) }).prefault({}),
});

export type Config = z.output<typeof configSchema>;

/** The agent with `default: true`; else `main`; else the only one. */
export function defaultAgentOf(agents: Readonly<Record<string, { readonly default?: boolean | undefined }>>): string | undefined {
  const ids = Object.keys(agents);
  return ids.find((id) => agents[id]?.default) ?? ids.find((id) => id === "main") ?? (ids.length === 1 ? ids[0] : undefined);
}
