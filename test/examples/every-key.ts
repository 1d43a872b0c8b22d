/** A config that uses every key there is, so that whoever reads one has something to read. Models are offline. */
export const EVERY_KEY = `
model: [offline/demo, offline/demo]
max_steps: 20
personality: You are brief.
tools: { profile: full, also_allow: [file_read], allow: [file_read, terminal, web_fetch, session_search], deny: [image_generate], ask: [terminal] }
budget: { usd_per_day: 1, usd_per_task: 1, tokens_per_day: 1000000, tokens_per_task: 1000000 }
sandbox: { kind: auto, network: none }
dm_scope: per-peer
group_scope: per-peer
memory_scope: agent
workspace_scope: agent
retention: 30d
nodes: "*"
subagent: { model: offline/demo }
unrouted: default
owners: [telegram:7]
identities: { jon: [telegram:7, discord:9] }
providers:
  local: { type: openai-compatible, base_url: http://127.0.0.1:8000/v1, api_key: provider-key }
prices: { local/small: { input: 1, output: 2, cached_input: 0.1 } }
limits: { turns: 64, waiting: 1000, waiting_per_agent: 100, waiting_per_chat: 50 }
web: { search: { searxng: http://127.0.0.1:8, brave: brave-key-value, tavily: tavily-key-value }, private_hosts: [127.0.0.1] }
agents:
  main: { default: true, tools: coding, sees: "*", subagents: { agents: [peer:far] } }
  coder:
    state: active
    weight: 2
    max_steps: 10
    model: offline/demo
    personality: You write code.
    roles: [engineer]
    tools: { profile: coding, also_allow: [web_fetch], allow: [web_fetch, terminal, delegate_task, agent_delegate], deny: [process], ask: [terminal] }
    budget: { usd_per_day: 1, usd_per_task: 1, tokens_per_day: 1000000, tokens_per_task: 1000000 }
    sandbox: { kind: none, network: full }
    dm_scope: main
    group_scope: chat
    memory_scope: chat
    workspace_scope: topic
    shared_paths: [{ path: docs, mode: rw, name: papers }]
    subagents: { model: offline/demo, max_depth: 1, max_children: 1, agents: [main, { id: away, rights: own }] }
    sees: [main]
    guests: [jane]
    retention: 7d
    nodes: [gpu]
    mcp:
      files: { command: server, args: [--all], env: { MCP_TOKEN: mcp-token-value }, trusted: true }
      remote: { url: http://127.0.0.1:9/mcp, headers: { authorization: Bearer mcp-header }, trusted: false }
    env: { API_TOKEN: agent-token-value }
  plain: { sandbox: auto }
  away: { state: paused, tools: [file_read] }
bindings:
  - { agent: coder, match: { platform: other, account: a, guild: g, team: g, chat: c, topic: t, chat_type: group, peer: p, roles: [r] } }
  - { agent: coder, telegram: c, topic: t, account: a, guild: g, team: g, chat_type: group, peer: p, roles: [r] }
  - { agent: coder, discord: c }
  - { agent: coder, slack: c }
  - { agent: coder, whatsapp: c }
  - { agent: coder, webhook: c }
  - { agent: coder, web: c }
  - { agent: coder, terminal: c }
  - { agent: away, match: { platform: far } }
channels:
  telegram:
    token: channel-token
    app_token: channel-app-token
    signing_secret: channel-signing-secret
    app_secret: channel-app-secret
    verify_token: channel-verify-token
    phone_number_id: "100"
    secret: channel-secret-value
    url: http://127.0.0.1:8
    allow: [7]
    require_mention: true
    api_url: http://127.0.0.1:8
    delivery: at_least_once
    stream: true
    receipts: groups
    max_file_mb: 1
    accounts:
      work: { token: account-token, app_token: channel-app-token, signing_secret: channel-signing-secret, app_secret: channel-app-secret, verify_token: channel-verify-token, phone_number_id: "100", secret: channel-secret-value, url: http://127.0.0.1:8, allow: [7], require_mention: true, api_url: http://127.0.0.1:8, delivery: at_least_once, stream: true, receipts: groups, max_file_mb: 1 }
pools:
  house:
    readers: ["*"]
    writers: [coder]
    quota: { max_bytes: 100000, max_entries: 100, agent_max_bytes: 100000, agent_max_entries: 100 }
    keys:
      facts: { readers: [coder], writers: [coder], schema: { type: object }, policy: last_write, ttl: 30d, max_bytes: 1000, overflow: reject, endorse: [coder] }
      any: { schema: true }
a2a: { agents: [coder], url: http://127.0.0.1:4270, max_depth: 1, max_open: 5 }
peers: { far: { url: http://127.0.0.1:9/, token: peer-token-value, give_up_after: 1s } }
store: sqlite
server: { host: 127.0.0.1, port: 0 }
`;
