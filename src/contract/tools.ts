import { z } from "zod";

/** The built-in tools by group; `other` is no group that a rule can name. */
export const TOOL_GROUPS = {
  fs: ["file_read", "file_write", "file_edit", "file_search", "file_list"],
  runtime: ["terminal", "process"],
  web: ["web_fetch", "web_search"],
  memory: ["memory_save", "memory_search", "memory_forget", "session_search"],
  context: ["context_read", "context_write", "context_list", "context_watch"],
  delegation: ["delegate_task", "agent_delegate", "task_check", "task_cancel", "task_search", "agent_list"],
  coordination: ["claim", "claim_renew", "claim_release", "mail_send", "mail_read", "mail_ack", "propose", "vote", "proposal_check"],
} as const satisfies Record<string, readonly string[]>;
export type ToolGroup = keyof typeof TOOL_GROUPS;

const OTHER_TOOLS = ["todo", "clarify", "schedule", "message_send", "image_generate", "skill_read"] as const;
export const BUILT_IN_TOOLS: readonly string[] = [...Object.values(TOOL_GROUPS).flat(), ...OTHER_TOOLS];

/** Where programs of agents find the workspace and the shared folders when they run in a sandbox; file tools know the names too. */
export const SEEN_WORKSPACE = "/workspace";
export const SEEN_SHARED = "/shared";

/** What a profile holds, in the words of the rules: tools, wildcards, groups. `full` is everything, tools of MCP servers included. */
export const PROFILE_NAMES = ["minimal", "messaging", "coding", "full"] as const;
export type ProfileName = (typeof PROFILE_NAMES)[number];
const minimal = ["clarify", "todo"];
const messaging = [...minimal, "group:memory", "group:web", "group:context", "mail_*", "message_send"];
const coding = [...messaging, "group:fs", "group:runtime", "group:coordination", "group:delegation"];
export const PROFILES: Readonly<Record<ProfileName, readonly string[]>> = { minimal, messaging, coding, full: ["*"] };

/** Other names that rules and callers may use for the same thing. */
export const TOOL_ALIASES: Readonly<Record<string, string>> = { web_extract: "web_fetch", memory: "group:memory" };

/** A tool, a wildcard (`mcp__files__*`) or a group (`group:fs`), as rules name them. Whether it names anything is checked with the tools at hand. */
export const toolPattern = z
  .string()
  .max(200)
  .regex(
    new RegExp(`^(group:(${Object.keys(TOOL_GROUPS).join("|")})|[a-z0-9_*-]+)$`),
    `expected a tool's name, a wildcard such as mcp__files__*, or a group: ${Object.keys(TOOL_GROUPS)
      .map((name) => `group:${name}`)
      .join(", ")}`,
  );
const patterns = z.array(toolPattern).max(500);

/** Every form of `tools:` comes to this: the profile's tools and `also_allow`, of these only `allow` where it is given, without `deny`. */
export interface ToolRules {
  readonly profile: ProfileName;
  readonly also_allow: readonly string[];
  readonly allow: readonly string[] | null;
  readonly deny: readonly string[];
  readonly ask: readonly string[];
}

const profileName = z.enum(PROFILE_NAMES);
const longForm = z.strictObject({
  profile: profileName.optional(),
  also_allow: patterns.optional(),
  allow: patterns.optional(),
  deny: patterns.optional(),
  ask: patterns.optional(),
});

/** `coding` (a profile), `[file_read, web_fetch]` (these alone), or the long form. */
export const toolRules = z.union([profileName, patterns, longForm]).transform((written): ToolRules => {
  const long = typeof written === "string" ? { profile: written } : Array.isArray(written) ? { allow: written } : written;
  return {
    profile: long.profile ?? "full",
    also_allow: long.also_allow ?? [],
    allow: long.allow ?? null,
    deny: long.deny ?? [],
    ask: long.ask ?? [],
  };
});
