import { setTimeout as sleep } from "node:timers/promises";
import { modelRegistry } from "../abilities/models/model-registry.ts";
import { offlineProvider } from "../abilities/models/offline-model.ts";
import { decideDue } from "../acts/decide-due.ts";
import { sweepGuests } from "../acts/end-guest.ts";
import { DELIVERY_WORK, TURN_WORK } from "../acts/work-kinds.ts";
import { COMMONS } from "../contract/guests.ts";
import { deliverReply } from "../drivers/dispatch/deliver-reply.ts";
import { Dispatcher } from "../drivers/dispatch/dispatcher.ts";
import { takeTurn } from "../drivers/dispatch/take-turn.ts";
import { Upkeep } from "../drivers/dispatch/upkeep.ts";
import { intake } from "../drivers/intake/accept.ts";
import { allRoutes } from "../edges/api/all-routes.ts";
import { createApp } from "../edges/api/app.ts";
import { operatorOr } from "../edges/api/credential.ts";
import { systemClock } from "../kernel/clock.ts";
import { noCrashPoints, type ReachedPoint } from "../kernel/crash-points.ts";
import { asFailure } from "../kernel/failure.ts";
import { idSource } from "../kernel/ids.ts";
import { systemRandom } from "../kernel/random.ts";
import { Access } from "../records/access/access.ts";
import { Guests } from "../records/access/guests.ts";
import { AgentRegistry } from "../records/agents/registry.ts";
import { revisionOf } from "../records/agents/revision.ts";
import { Agreements } from "../records/agreements/agreements.ts";
import { Claims } from "../records/claims/claims.ts";
import { Mailbox } from "../records/mailbox/mailbox.ts";
import { Pools } from "../records/pools/pools.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";
import { openStore } from "../store/store.ts";
import { LiveHub } from "../turns/live-hub.ts";
import { TurnsHere } from "../turns/turns-here.ts";
import { type AgentSummary, summaryOf } from "./agent-summary.ts";
import { removeDaemonFile, writeDaemonFile } from "./daemon-file.ts";
import { lockHome } from "./home-lock.ts";
import { lazyMcp } from "./lazy-mcp.ts";
import { listen } from "./listen.ts";
import { ensureOperatorToken } from "./operator-token.ts";
import { type LogLevel, stderrLog } from "./stderr-log.ts";
import { storeInWords } from "./store-in-words.ts";
import { readVersion } from "./version.ts";

export interface DaemonOptions extends Whereabouts {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly logLevel?: LogLevel;
  readonly reached?: ReachedPoint;
}

export interface Daemon {
  readonly version: string;
  readonly url: string;
  readonly node: string;
  readonly operatorToken: string;
  readonly home: string;
  readonly store: string;
  readonly agents: readonly AgentSummary[];
  /** Finishes or hands over what runs, and lets go of everything. At most 10 s. */
  stop(): Promise<void>;
}

const TURNS_AT_ONCE = 64;
const DUE_AT_ONCE = 100;
const LEASE_MS = 15_000;
const TURN_MS = 10 * 60_000;
const GRACE_MS = 5_000;
const STOP_MS = 8_000;

/** Builds everything and hands each part what it needs. Whatever fails on the way undoes what was begun before it. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const reached = options.reached ?? noCrashPoints;
  const log = stderrLog(systemClock, options.logLevel ?? "info");
  const version = readVersion();
  const newId = idSource(systemClock, systemRandom);
  const node = newId();
  const settings = loadSettings(options, process.env);
  const { home, config, storeLocation } = settings;

  await using undo = new AsyncDisposableStack();
  const lock = lockHome(home);
  undo.defer(() => lock.release());
  const store = await openStore(storeLocation, { clock: systemClock, random: systemRandom, reached });
  undo.defer(() => store.close());
  // The home's lock makes this the only daemon on the file: what is claimed there was claimed by one that died.
  if (store.kind === "sqlite") {
    await store.queue.letGoOfAll();
    await store.idempotency.letGoOfAll();
  }
  const operatorToken = ensureOperatorToken(home, systemRandom);

  const agents = new AgentRegistry(revisionOf(settings, 0));
  const access = new Access(store, agents, newId, systemRandom);
  const claims = new Claims(store, node);
  const mailbox = new Mailbox(store, newId);
  const pools = new Pools(store);
  await pools.reconcile({ [COMMONS]: { readers: ["*"], writers: ["*"] }, ...config.pools });
  const agreements = new Agreements(store);
  const agreement = { store, agreements, pools };
  const guests = new Guests(store, access, agents);
  await guests.giveTime();
  const models = modelRegistry([offlineProvider]);
  const live = new LiveHub();
  const running = new TurnsHere();
  const turn = takeTurn({ store, agents, models, live, running, newId, reached, turnMs: TURN_MS });
  const handlers = { [TURN_WORK]: turn, [DELIVERY_WORK]: deliverReply(store) };
  const dispatcher = new Dispatcher({ queue: store.queue, owner: node, handlers, log, limit: TURNS_AT_ONCE, leaseMs: LEASE_MS });
  const upkeep = new Upkeep(store, node, log, [
    { name: "idempotency keys", run: () => store.idempotency.sweep() },
    { name: "claims", run: () => claims.sweep() },
    { name: "mail", run: () => mailbox.sweep() },
    { name: "proposals", run: () => decideDue(agreement, DUE_AT_ONCE) },
    { name: "pools", run: () => pools.sweep() },
    { name: "guests", run: () => sweepGuests({ store, guests, claims }) },
  ]);
  const mcp = lazyMcp({ store, pools, agreements, claims, mailbox, guests, newId, log, version });
  const accept = intake(store, agents, newId, reached);
  const host = options.host ?? config.server.host;
  const streams = new AbortController();
  let ready = true;
  const app = createApp({
    store,
    log,
    routes: allRoutes({ store, accept, live, access, claims, mailbox, agreement, newId, guests, mcp, version, node, isReady: () => ready }),
    authenticate: operatorOr(operatorToken, (token) => access.authenticate(token)),
    stillValid: (ids) => access.stillValid(ids),
    host,
    version,
    stopping: streams.signal,
  });
  const server = await listen(app.fetch, host, options.port ?? config.server.port);
  undo.defer(() => server.closeAll());
  undo.defer(() => streams.abort());
  undo.defer(() => server.refuseNew());

  const tell = (type: "daemon.started" | "daemon.stopped", data: unknown): Promise<unknown> =>
    store.transact(type, (tx) => store.ledger.append(tx, { type, actor: node, subject: ["node", node], data }));
  await tell("daemon.started", { version, url: server.url, pid: process.pid });
  writeDaemonFile(home, { url: server.url, pid: process.pid, version, node });
  dispatcher.start();
  upkeep.start();
  const parts = undo.move();

  const orderly = async (): Promise<void> => {
    ready = false;
    removeDaemonFile(home);
    server.refuseNew();
    await dispatcher.stop(GRACE_MS);
    await upkeep.stop();
    await tell("daemon.stopped", null);
    await parts.disposeAsync();
  };
  const stop = async (): Promise<void> => {
    const late = sleep(STOP_MS, "late", { ref: false });
    const outcome = await Promise.race([orderly().catch((error: unknown) => asFailure(error).message), late]);
    if (outcome !== undefined) log.warn("stopped without ceremony; what was unfinished is taken up at the next start", { why: outcome });
  };
  let stopped: Promise<void> | undefined;
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
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
