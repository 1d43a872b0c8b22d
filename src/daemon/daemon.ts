import { hostname } from "node:os";
import { configuredModels } from "../abilities/models/configured-models.ts";
import type { Provider } from "../abilities/models/model-registry.ts";
import { redactedModels } from "../abilities/models/redacted-models.ts";
import { Peers } from "../abilities/peers/peers.ts";
import { McpServers } from "../abilities/tools/mcp/mcp-servers.ts";
import { skillSource } from "../abilities/tools/skills/skill-source.ts";
import type { Tool } from "../abilities/tools/tool.ts";
import { Toolbox } from "../abilities/tools/toolbox.ts";
import type { ScheduleParts } from "../acts/schedules/schedule-parts.ts";
import type { TaskParts } from "../acts/tasks/task-parts.ts";
import { DELIVERY_WORK, REMOTE_WORK, TURN_WORK } from "../acts/work-kinds.ts";
import { AgentsHere } from "../drivers/dispatch/agents-here.ts";
import { deliverReply } from "../drivers/dispatch/deliver-reply.ts";
import { Dispatcher } from "../drivers/dispatch/dispatcher.ts";
import { doRemoteTask } from "../drivers/dispatch/do-remote-task.ts";
import { takeTurn } from "../drivers/dispatch/take-turn.ts";
import { Upkeep } from "../drivers/dispatch/upkeep.ts";
import { type Accept, intake } from "../drivers/intake/accept.ts";
import { receiver } from "../drivers/intake/receive.ts";
import { whereTo } from "../drivers/intake/where-to.ts";
import { allRoutes } from "../edges/api/all-routes.ts";
import { createApp } from "../edges/api/app.ts";
import { channelGauges } from "../edges/api/channel-gauges.ts";
import { operatorOr } from "../edges/api/credential.ts";
import { nodeGauges } from "../edges/api/node-gauges.ts";
import { BUILT_IN_CHANNELS } from "../edges/channels/built-in-channels.ts";
import { ChannelHub } from "../edges/channels/channel-hub.ts";
import { followTurns } from "../edges/channels/follow-turn.ts";
import type { ChannelPlugin } from "../kernel/channel-plugin.ts";
import { systemClock } from "../kernel/clock.ts";
import { noCrashPoints, type ReachedPoint } from "../kernel/crash-points.ts";
import { messageOf } from "../kernel/failure.ts";
import { idSource } from "../kernel/ids.ts";
import { systemRandom } from "../kernel/random.ts";
import { Redaction } from "../kernel/redact.ts";
import { Access } from "../records/access/access.ts";
import { Approvals } from "../records/access/approvals.ts";
import { Guests } from "../records/access/guests.ts";
import { hasFiles } from "../records/agents/agent-home.ts";
import { HELD_TURNS } from "../records/agents/held-turns.ts";
import { Skills } from "../records/agents/skills.ts";
import { Agreements } from "../records/agreements/agreements.ts";
import type { AccountName } from "../records/channels/channel-accounts.ts";
import { Claims } from "../records/claims/claims.ts";
import { Mailbox } from "../records/mailbox/mailbox.ts";
import { Memory } from "../records/memory/memory.ts";
import { Pools } from "../records/pools/pools.ts";
import { Schedules } from "../records/schedules/schedules.ts";
import { Sessions } from "../records/sessions/sessions.ts";
import { Tasks } from "../records/tasks/tasks.ts";
import { Budgets } from "../records/usage/budgets.ts";
import { KnownWorkflows } from "../records/workflows/known-workflows.ts";
import { Workspaces } from "../records/workspaces/workspaces.ts";
import { openStore } from "../store/store.ts";
import { KnownTurns } from "../turns/known-turns.ts";
import { LiveHub } from "../turns/live-hub.ts";
import { TurnsHere } from "../turns/turns-here.ts";
import { type AgentSummary, summaryOf } from "./agent-summary.ts";
import type { BuiltInTools } from "./built-in-tools.ts";
import { choresOf } from "./chores.ts";
import { contextSources } from "./context-sources.ts";
import { removeDaemonFile, writeDaemonFile } from "./daemon-file.ts";
import { homeId } from "./home-id.ts";
import { lockHome } from "./home-lock.ts";
import { lazyA2a } from "./lazy-a2a.ts";
import { lazyMcp } from "./lazy-mcp.ts";
import { listen, wholeResponse } from "./listen.ts";
import { LocalModels } from "./local-models.ts";
import { nameNode } from "./node-name.ts";
import { ensureOperatorToken } from "./operator-token.ts";
import { Presence } from "./presence.ts";
import { programEnvironment } from "./program-environment.ts";
import { Readiness } from "./readiness.ts";
import { type LogLevel, stderrLog } from "./stderr-log.ts";
import { stopInOrder } from "./stop-in-order.ts";
import { storeInWords } from "./store-in-words.ts";
import type { ObserveConfig } from "./store-revision.ts";
import { type ConfigSource, loadWatched, Tenants } from "./tenants.ts";
import { readVersion } from "./version.ts";

export interface DaemonOptions extends ConfigSource {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly logLevel?: LogLevel;
  readonly reached?: ReachedPoint;
  /** Models besides our own: of the program around us, or of a self-test. */
  readonly providers?: readonly Provider[];
  /** Tools of the program around us, under the same rules as ours. */
  readonly tools?: readonly Tool[];
  /** Channels of the program around us, before ours. */
  readonly channels?: readonly ChannelPlugin[];
  /** False: it connects to no platform; what people say there waits for another daemon. */
  readonly listens?: boolean;
  readonly observe?: ObserveConfig;
  /** What the other nodes know this one by; the machine's name when absent. */
  readonly name?: string | undefined;
  /** What `nodes:` of an agent may name besides. */
  readonly labels?: readonly string[] | undefined;
  /** How long work is this node's without a word of it. */
  readonly leaseMs?: number;
}

export interface Daemon {
  readonly version: string;
  readonly url: string;
  readonly node: string;
  readonly operatorToken: string;
  readonly home: string;
  readonly store: string;
  readonly agents: readonly AgentSummary[];
  /** The accounts on chat platforms that it began with. */
  readonly channels: readonly AccountName[];
  /** For what went wrong where nobody listens: it is logged, without secrets. */
  report(reason: unknown): void;
  /** Finishes or hands over what runs, and lets go of everything. At most 10 s. */
  stop(): Promise<void>;
}

const LEASE_MS = 15_000;
/** Models and tools have limits of their own; this one is for a turn that never comes to an end. */
const TURN_MS = 2 * 60 * 60_000;
const FETCH_MS = 60_000;
const DELIVERIES_AT_ONCE = 32;
/** For what is still being answered when everything else has ended. */
const LAST_WORDS_MS = 500;
const QUIET_MS = 3_000;
/** Of agents, which change by themselves only where a node does. */
const HOMES_MS = 60_000;

/** Builds everything and hands each part what it needs. Whatever fails on the way undoes what was begun before it. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const reached = options.reached ?? noCrashPoints;
  const redaction = new Redaction();
  const log = stderrLog(systemClock, options.logLevel ?? "info", redaction.text);
  const version = readVersion();
  const newId = idSource(systemClock, systemRandom);
  const node = newId();
  const leaseMs = options.leaseMs ?? LEASE_MS;
  const named = nameNode(options, process.env, hostname(), options.listens === false ? node.slice(-6) : null);
  const toolNames = (options.tools ?? []).map(({ name }) => name);
  const platforms = (options.channels ?? []).map(({ platform }) => platform);
  const watched = await loadWatched(options, { knownTools: toolNames, knownChannels: platforms });
  const settings = options.observe?.settings(watched.settings) ?? watched.settings;
  const { home, config, storeLocation } = settings;
  redaction.add(settings.secrets.values());
  const local = new LocalModels();
  const localModel = local.lookFor(settings);

  await using undo = new AsyncDisposableStack();
  const lock = lockHome(home);
  undo.defer(() => lock.release());
  const store = await openStore(storeLocation, { clock: systemClock, random: systemRandom, reached, log });
  undo.defer(() => store.close());
  // The home's lock makes this the only daemon on the file: what is claimed there was claimed by one that died.
  if (store.kind === "sqlite") {
    await store.queue.letGoOfAll();
    await store.idempotency.letGoOfAll();
    await store.leases.letGoOfAll();
    await store.ledger.skipLostNumbers();
  }
  const operatorToken = ensureOperatorToken(home, systemRandom);
  redaction.add([["operator.token", operatorToken]]);

  const pools = new Pools(store);
  const tenants = await Tenants.open(
    options,
    { ...watched, settings: local.in(settings) },
    {
      store,
      pools,
      node,
      name: named.name,
      log,
      redaction,
      reached,
      observe: options.observe,
      local,
      toolNames,
      platforms,
    },
  );
  const { agents, personalities } = tenants;
  const access = new Access(store, agents, newId, systemRandom);
  const claims = new Claims(store, node);
  const mailbox = new Mailbox(store, newId);
  const agreements = new Agreements(store);
  const agreement = { store, agreements, pools };
  const guests = new Guests(store, access, agents);
  await guests.giveTime();
  const models = redactedModels(
    configuredModels(() => agents.current.settings, { providers: options.providers ?? [] }),
    redaction,
  );
  const approvals = new Approvals(store, newId);
  const budgets = new Budgets(store);
  const live = new LiveHub();
  const running = new TurnsHere();
  const servers = new McpServers({
    store,
    approvals,
    clock: systemClock,
    random: systemRandom,
    log,
    environment: programEnvironment(process.env),
    version,
  });
  undo.defer(() => servers.stop());
  const skills = new Skills(home);
  const memory = new Memory(store, newId);
  const sessions = new Sessions(store, agents);
  // Loaded with the first turn: a start does not wait for schemas of tools that nobody calls yet.
  let built: Promise<BuiltInTools> | undefined;
  const ours = (): Promise<BuiltInTools> => {
    built ??= import("./built-in-tools.ts").then((module) =>
      module.builtInTools({
        home,
        clock: systemClock,
        log,
        store,
        pools,
        agents,
        agreements,
        claims,
        mailbox,
        memory,
        sessions,
        reads: store.read,
        newId,
        schedules,
        delegation: { tasks, models, seen: new Tasks(store, agents) },
        redact: redaction.text,
      }),
    );
    return built;
  };
  undo.defer(async () => (await built)?.close());
  const toolbox = new Toolbox(async () => (await ours()).tools, options.tools ?? [], [servers, skillSource(skills)], log);
  let opened: Promise<Workspaces> | undefined;
  const workspaces = (): Promise<Workspaces> => {
    opened ??= Workspaces.of(home, { clock: systemClock, newId });
    return opened;
  };
  const sources = contextSources({ home, clock: systemClock, newId, personalities, skills, memory, pools });
  const tasks: TaskParts = {
    store,
    newId,
    delivers: (address) => channels.delivers(address),
    agents,
    pools,
    workflows: new KnownWorkflows(),
  };
  const schedules: ScheduleParts = { tasks, schedules: new Schedules(store, newId), reached };
  // Whoever posts messages of another platform through the API collects the replies there.
  const { delivers } = tasks;
  const channels = new ChannelHub({
    store,
    node,
    log,
    random: systemRandom,
    clock: systemClock,
    leaseMs,
    plugins: [...(options.channels ?? []), ...BUILT_IN_CHANNELS],
    listens: options.listens ?? true,
    receive: (account, messages, alongside) => receive(account, messages, alongside),
  });
  const turn = takeTurn({
    delivers,
    store,
    pools,
    workflows: tasks.workflows,
    agents,
    models,
    toolbox,
    approvals,
    sources,
    past: new KnownTurns(),
    live,
    running,
    newId,
    reached,
    clock: systemClock,
    redaction,
    spill: async (context, text) => (await ours()).spill(context, text),
    files: { senderOf: (address) => channels.senderOf(address), workspaces, fetchMs: FETCH_MS },
    keepDelivery: (account) => deliveries.keepPlace(account),
    shows: followTurns({
      ...{ store, newId, live, log, delivers, clock: systemClock, quietMs: QUIET_MS },
      senderOf: (address) => channels.senderOf(address),
    }),
    turnMs: TURN_MS,
  });
  const remote = doRemoteTask({ ...tasks, peers: new Peers(systemClock), random: systemRandom, reached, redact: redaction.text });
  const common = { queue: store.queue, owner: node, log, leaseMs };
  const drawn = homeId(home, hostname(), systemRandom);
  if (drawn.elsewhere !== null)
    log.warn("this home is a copy, or has moved: it is taken for a new one. What was bound to the one before follows its name (--name)", {
      before: drawn.elsewhere,
    });
  const known = { ...named, home: drawn.id };
  const here = new AgentsHere({ store, agents, node: known, log, hasFiles: (agent) => hasFiles(home, agent) });
  const dispatcher = new Dispatcher({
    ...common,
    handlers: { [TURN_WORK]: here.only(turn), [REMOTE_WORK]: remote },
    elsewhere: () => here.elsewhere(),
    limit: () => agents.current.settings.config.limits.turns,
    tenants: () => agents.current.agents.size,
  });
  // Apart from turns, and by turns of the accounts: a platform that is slow to answer keeps nobody else waiting.
  const deliveries = new Dispatcher({
    ...common,
    handlers: {
      [DELIVERY_WORK]: deliverReply({ store, random: systemRandom, reached, senderOf: (address) => channels.senderOf(address) }),
    },
    limit: () => DELIVERIES_AT_ONCE,
    tenants: () => channels.accounts.length,
  });
  let adopted = -1;
  /** Nothing looks for deliveries where nothing is delivered. */
  const adoptChannels = async (): Promise<void> => {
    const { number, settings: now } = agents.current;
    if (number === adopted) return;
    adopted = number;
    await channels.adopt(now.config.channels);
    if (channels.accounts.length > 0) deliveries.start();
  };
  const upkeep = new Upkeep(
    tasks,
    node,
    log,
    choresOf({ ...tasks, node, schedules, claims, mailbox, agreement, approvals, budgets, guests }, [
      { name: "config of the others", due: () => tenants.newer(), run: () => tenants.follow() },
      { name: "held turns", due: () => HELD_TURNS, run: () => tenants.wake() },
      { name: "channels", run: adoptChannels },
      {
        name: "programs in the background",
        // Of one that has moved, the agent could neither see nor end it any more.
        run: async () =>
          (await built)?.endOf((agent) => agents.current.agents.get(agent)?.state !== "active" || here.elsewhere().has(agent)),
      },
      { name: "homes of agents", due: () => here.changed(), everyMs: () => (here.isBehind ? 0 : HOMES_MS), run: () => here.follow() },
      { name: "MCP servers", run: async () => servers.adopt(agents.current) },
    ]),
  );
  const mcp = lazyMcp({ ...tasks, agreements, claims, mailbox, guests, agents, running, log, version });
  const takesIn = intake(store, agents, newId, reached, {
    models,
    approvals,
    running,
    tasks,
    delivers,
    keepPlace: (agent) => dispatcher.keepPlace(agent),
  });
  const accept: Accept = (message, poster, brought) =>
    takesIn.accept(redaction.value(message), poster, brought && redaction.value(brought));
  const receive = receiver({
    store,
    newId,
    delivers,
    agents,
    intake: takesIn,
    random: systemRandom,
    log,
    reached,
    redact: (value) => redaction.value(value),
  });
  const host = options.host ?? config.server.host;
  const streams = new AbortController();
  const readiness = new Readiness();
  const app = createApp({
    store,
    log,
    routes: allRoutes({
      store,
      tasks,
      home,
      log,
      accept,
      agents,
      live,
      running,
      sessions,
      whereTo: whereTo(store, agents),
      approvals,
      access,
      claims,
      mailbox,
      agreement,
      newId,
      guests,
      mcp,
      a2a: lazyA2a({ tasks, live, running, log, version }),
      schedules,
      hooks: (platform, account, request) => channels.receive(platform, account, request),
      accounts: () => channels.accounts,
      agentControl: tenants.control(
        () => dispatcher.letGo(),
        (agent) => summaryOf(agent, models).problem ?? here.problemOf(agent),
      ),
      missingNodes: () => here.missing(),
      policy: () => agents.current.policy,
      version,
      node,
      isReady: () => readiness.ask(),
    }),
    authenticate: operatorOr(operatorToken, (token) => access.authenticate(token)),
    stillValid: (ids) => access.stillValid(ids),
    host,
    version,
    stopping: streams.signal,
    redaction,
    looks: [channelGauges(store, () => channels.accounts), nodeGauges(store, node, () => upkeep.takeovers)],
    isDraining: () => readiness.isRefusing,
    whole: wholeResponse(),
  });
  const server = await listen(app.fetch, host, options.port ?? config.server.port);
  undo.defer(() => server.close(LAST_WORDS_MS));
  undo.defer(() => streams.abort());

  const presence = new Presence(
    store,
    {
      id: node,
      ...known,
      version,
      url: server.announced,
      leaseMs,
    },
    () => ({ revision: agents.current.number, problem: tenants.problem }),
    log,
  );
  await presence.begin();
  undo.defer(() => presence.end());
  await store.confirmSchema();
  await here.begin();
  const tell = (type: "daemon.started" | "daemon.stopped", data: unknown): Promise<unknown> =>
    store.transact(type, (tx) => store.ledger.append(tx, { type, actor: node, subject: ["node", node], data }));
  await tell("daemon.started", { version, url: server.url, pid: process.pid });
  writeDaemonFile(home, { url: server.url, pid: process.pid, version, node });
  dispatcher.start();
  await adoptChannels();
  upkeep.start();
  tenants.watch(() => void presence.beat());
  void tenants.takeUpLocal(localModel);
  const parts = undo.move();

  const refuse = (): void => {
    server.drain();
    removeDaemonFile(home);
    tenants.stop();
  };
  const over = async (): Promise<void> => {
    try {
      await tell("daemon.stopped", null);
    } finally {
      await parts.disposeAsync();
    }
  };
  let stopped: Promise<void> | undefined;
  const accounts = channels.accounts.map(({ platform, account }) => ({ platform, account }));
  const summaries = agents.list().map((agent) => summaryOf(agent, models));
  for (const { id, problem } of summaries) if (problem) log.warn("an agent cannot answer", { agent: id, problem });
  return {
    version,
    url: server.url,
    node,
    operatorToken,
    home,
    store: storeInWords(storeLocation),
    agents: summaries,
    channels: accounts,
    report: (reason) => log.error("something failed and nobody was told; the rest goes on", { error: messageOf(reason) }),
    stop: () => {
      stopped ??= stopInOrder({
        ...{ readiness, presence, upkeep, channels, dispatchers: [dispatcher, deliveries], log },
        ...{ refuse, over },
      });
      return stopped;
    },
  };
}
