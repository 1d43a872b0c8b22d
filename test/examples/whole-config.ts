// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this

/** Every key that users rely on, in the forms in which they may write it. */
export const WHOLE_CONFIG = `# Everything at once.
model: anthropic/claude-opus-4.6            # for whoever names none
personality: You answer in short sentences.
tools: full
subagent: { model: google/gemini-3-flash-preview }
dm_scope: per-channel-peer
group_scope: chat
memory_scope: agent
workspace_scope: agent
sandbox: auto
budget: { usd_per_day: 20 }
unrouted: default
owners: [telegram:7]
identities: { jon: [telegram:7, discord:9] }

providers:
  local: { type: openai-compatible, base_url: http://127.0.0.1:8000/v1, api_key: \${LOCAL_KEY} }

agents:
  main: { default: true }
  coder:
    model: anthropic/claude-sonnet-4
    personality: You write code and nothing else.
    roles: [engineer]
    tools: coding
    shared_paths: [{ path: ./team-docs, mode: ro }]
    subagents: { max_depth: 2, max_children: 5, agents: [researcher, { id: ops, rights: own }] }
    sees: []
    sandbox: auto
    mcp: { files: { command: some-mcp-server, args: [] } }
    env: { API_TOKEN: \${CODER_TOKEN} }      # nobody else's
    budget: { usd_per_day: 5, tokens_per_task: 200000 }
  researcher: { tools: { profile: messaging, also_allow: [web_fetch], deny: [terminal] } }
  ops: {}

bindings:
  - { agent: coder, telegram: "-100123456", topic: "42" }
  - { agent: coder, telegram: "-100123456" }
  - { agent: researcher, whatsapp: "*" }
  - { agent: coder, match: { platform: discord, guild: g1, chat_type: channel } }

channels:
  telegram: { token: \${TELEGRAM_TOKEN}, allow: [], require_mention: true }
pools:
  house: { readers: ["*"], writers: [researcher], keys: { facts: { policy: append, ttl: 30d, max_bytes: 65536 } } }
store: sqlite
server: { host: 127.0.0.1, port: 4270 }
`;

export const WHOLE_ENVIRONMENT = {
  LOCAL_KEY: "local-key-of-a-provider",
  CODER_TOKEN: "coder-token-of-an-agent",
  TELEGRAM_TOKEN: "1234:token-of-a-channel",
  ANTHROPIC_API_KEY: "key-of-anthropic",
  GEMINI_API_KEY: "key-of-google",
};
