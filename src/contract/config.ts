import { z } from "zod";
import { poolsConfig } from "./pools.ts";
import { RESERVED_NAMES } from "./tokens.ts";

/** Ids become folder names and parts of session keys, so they are plain. */
const agentId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "an agent's id is 1 to 64 letters, digits, _ and -")
  .refine((id) => !RESERVED_NAMES.includes(id.toLowerCase()), "this name is reserved; an agent needs another");
const roleName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "a role is 1 to 64 letters, digits, _ and -");
const modelName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]*\/\S+$/, "expected <provider>/<model>, for example offline/demo")
  .max(200);
const personality = z.string().max(100_000);

const agentConfig = z
  .strictObject({
    default: z.boolean().optional(),
    model: modelName.optional(),
    personality: personality.optional(),
    roles: z.array(roleName).max(50).optional(),
  })
  // `coder:` with nothing after it is an agent that inherits everything.
  .nullable()
  .transform((agent) => agent ?? {});

export type AgentConfig = z.output<typeof agentConfig>;

const agentsConfig = z
  .record(agentId, agentConfig)
  .refine((agents) => Object.keys(agents).length > 0, "expected at least one agent; without the key `agents` there is one, `main`")
  .superRefine((agents, context) => {
    const ids = Object.keys(agents);
    for (const [index, id] of ids.entries()) {
      const twin = ids.slice(0, index).find((other) => other.toLowerCase() === id.toLowerCase());
      // Their folders would be one and the same where file names ignore case.
      if (twin) context.addIssue({ code: "custom", path: [id], message: `"${id}" and "${twin}" differ in upper and lower case only` });
    }
    const [, second] = ids.filter((id) => agents[id]?.default);
    if (second) context.addIssue({ code: "custom", path: [second, "default"], message: "only one agent can be the default" });
    if (ids.length > 0 && defaultAgentOf(agents) === undefined)
      context.addIssue({ code: "custom", path: [], message: "expected one agent with `default: true`, or one named `main`" });
  });

/** What is read today; everything else is refused, so that no key is ignored in silence. */
export const configSchema = z.strictObject({
  model: modelName.optional(),
  personality: personality.optional(),
  unrouted: z.enum(["default", "refuse"]).default("default"),
  agents: agentsConfig.default({ main: {} }),
  pools: poolsConfig.default({}),
  store: z
    .string()
    .regex(/^(sqlite|postgres(ql)?:\/\/.+)$/, "expected sqlite or postgres://…")
    .optional(),
  server: z.strictObject({ host: z.string().min(1).default("127.0.0.1"), port: z.int().min(0).max(65_535).default(4270) }).prefault({}),
});

export type Config = z.output<typeof configSchema>;

/** The agent with `default: true`; else `main`; else the only one. */
export function defaultAgentOf(agents: Readonly<Record<string, AgentConfig>>): string | undefined {
  const ids = Object.keys(agents);
  return ids.find((id) => agents[id]?.default) ?? ids.find((id) => id === "main") ?? (ids.length === 1 ? ids[0] : undefined);
}
