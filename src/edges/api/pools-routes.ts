import { retractEntryIn } from "../../acts/retract-entry.ts";
import { writeAndAckIn } from "../../acts/write-and-ack.ts";
import {
  batch,
  batchAnswer,
  blame,
  blameQuery,
  difference,
  differenceQuery,
  type Entry,
  endorse,
  entry,
  entryHistory,
  entryList,
  entryPath,
  entryQuery,
  entryReaders,
  historyQuery,
  listQuery,
  newPool,
  pool,
  poolChange,
  poolDetails,
  poolList,
  poolSnapshot,
  putEntry,
  retract,
  retraction,
  snapshotQuery,
  watchQuery,
} from "../../contract/pools.ts";
import type { Claims } from "../../records/claims/claims.ts";
import type { Mailbox } from "../../records/mailbox/mailbox.ts";
import { noEntry } from "../../records/pools/access.ts";
import type { Pools } from "../../records/pools/pools.ts";
import { firstAfter } from "./event-routes.ts";
import { etag, wantedVersion } from "./preconditions.ts";
import { LOOKERS, MEMBERS, OPERATORS, type Route, route, stream } from "./route.ts";

export interface PoolRouteParts {
  readonly pools: Pools;
  readonly mailbox: Mailbox;
  readonly claims: Claims;
}

/** A value takes more room in a request than in the pool: spaces, escapes, and what stands around it. */
const WRAPPING = 1.25;

const withTag = <Status extends 200 | 201>(status: Status, body: Entry) => ({ status, body, headers: { etag: etag(body.version) } });

export function poolsRoutes(parts: PoolRouteParts): Route[] {
  return [...poolRoutes(parts), ...entryRoutes(parts), ...lineageRoutes(parts)];
}

function poolRoutes(parts: PoolRouteParts): Route[] {
  const { pools } = parts;
  return [
    route({
      method: "GET",
      path: "/api/pools",
      summary: "Pools one may read",
      allow: LOOKERS,
      answers: { 200: poolList },
      handle: async ({ caller }) => ({ status: 200, body: { pools: await pools.list(caller) } }),
    }),
    route({
      method: "POST",
      path: "/api/pools",
      summary: "Make a pool that outlives every run",
      allow: OPERATORS,
      body: newPool,
      answers: { 201: pool },
      handle: ({ caller, body: { name, ...definition }, transact }) =>
        transact("make pool", async (tx) => {
          await pools.createIn(tx, caller.name, name, definition);
          return { status: 201, body: await pools.describeIn(tx, caller, name) };
        }),
    }),
    route({
      method: "GET",
      path: "/api/pools/:pool",
      summary: "A pool and what it holds; its definition, for operators",
      allow: LOOKERS,
      answers: { 200: poolDetails },
      handle: async ({ caller, params }) => ({ status: 200, body: await pools.details(caller, params.pool) }),
    }),
    route({
      method: "GET",
      path: "/api/pools/:pool/snapshot",
      summary: "Every entry as it was at an event, by key",
      allow: LOOKERS,
      query: snapshotQuery,
      answers: { 200: poolSnapshot },
      handle: async ({ caller, params, query }) => ({ status: 200, body: await pools.snapshot(caller, params.pool, query) }),
    }),
    route({
      method: "POST",
      path: "/api/pools/:pool/batch",
      summary: "Write several entries and acknowledge mail, while claims are held, all or nothing",
      allow: MEMBERS,
      body: batch,
      maxBodyBytes: async (caller, { pool = "" }) => WRAPPING * (await pools.largestWrite(caller, pool)),
      answers: { 200: batchAnswer },
      handle: async ({ caller, params, body, transact }) => {
        const writes = body.writes.map(({ if_version, ttl, ...write }) => ({
          ...write,
          ttlMs: ttl ?? null,
          ...(if_version === undefined ? {} : { ifVersion: if_version }),
        }));
        const options = body.if_fresh ? { ifFresh: true } : {};
        try {
          return await transact("write batch", async (tx) => {
            const entries = await writeAndAckIn(parts, tx, caller, params.pool, writes, { acks: body.ack, claims: body.claims }, options);
            return { status: 200, body: { entries } };
          });
        } catch (error) {
          await pools.afterRefusal(caller, error);
          throw error;
        }
      },
    }),
    stream({
      path: "/api/pools/:pool/watch",
      summary: "Every change of the pool after an event, one operation at a time; resumes by Last-Event-ID",
      allow: LOOKERS,
      query: watchQuery,
      events: { "*": poolChange },
      open: async ({ caller, params, query, header }) => {
        const resumed = header("last-event-id");
        const after = resumed === undefined ? query.after : firstAfter(resumed, undefined);
        const stop = new AbortController();
        // Refused before the stream begins, and with its place in the ledger fixed by then.
        const changes = await pools.watch(caller, params.pool, after, stop.signal);
        return async (send, signal) => {
          signal.addEventListener("abort", () => stop.abort(), { once: true });
          if (signal.aborted) stop.abort();
          for await (const change of changes) await send({ id: String(change.seq), event: change.type, data: change });
        };
      },
    }),
  ];
}

function entryRoutes({ pools }: PoolRouteParts): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/pools/:pool/entries",
      summary: "Which entries there are, by key, without their values",
      allow: LOOKERS,
      query: listQuery,
      answers: { 200: entryList },
      handle: async ({ caller, params, query }) => ({ status: 200, body: await pools.listEntries(caller, params.pool, query) }),
    }),
    route({
      method: "GET",
      path: "/api/pools/:pool/entries/:key",
      summary: "An entry, or an older version of it",
      allow: LOOKERS,
      params: entryPath,
      query: entryQuery,
      answers: { 200: entry },
      handle: async ({ caller, params, query }) => {
        const found = await pools.read(caller, params.pool, params.key, query);
        if (!found) throw noEntry(params.pool, params.key);
        return withTag(200, found);
      },
    }),
    route({
      method: "PUT",
      path: "/api/pools/:pool/entries/:key",
      summary: "Write an entry; If-Match names the version it replaces, If-None-Match: * says that there is none",
      allow: MEMBERS,
      params: entryPath,
      body: putEntry,
      maxBodyBytes: async (caller, { pool = "", key = "" }) => WRAPPING * (await pools.largestWrite(caller, pool, key)),
      answers: { 200: entry, 201: entry },
      handle: async ({ caller, params, body, header }) => {
        const wanted = wantedVersion(header);
        const write = { key: params.key, value: body.value, note: body.note ?? null, ttlMs: body.ttl ?? null, ...wanted };
        const [written] = await pools.write(caller, params.pool, [write]);
        const made = written as Entry;
        return made.version === 1 || wanted.ifVersion === null ? withTag(201, made) : withTag(200, made);
      },
    }),
    route({
      method: "DELETE",
      path: "/api/pools/:pool/entries/:key",
      summary: "Remove an entry; its history stays, with a tombstone as its newest version",
      allow: MEMBERS,
      params: entryPath,
      answers: { 200: entry },
      handle: async ({ caller, params, header }) => {
        const [tombstone] = await pools.write(caller, params.pool, [{ key: params.key, remove: true, ...wantedVersion(header) }]);
        return withTag(200, tombstone as Entry);
      },
    }),
    route({
      method: "GET",
      path: "/api/pools/:pool/entries/:key/history",
      summary: "Every version by rising number, tombstones and retracted ones included",
      allow: LOOKERS,
      params: entryPath,
      query: historyQuery,
      answers: { 200: entryHistory },
      handle: async ({ caller, params, query }) => ({ status: 200, body: await pools.history(caller, params.pool, params.key, query) }),
    }),
    route({
      method: "GET",
      path: "/api/pools/:pool/entries/:key/diff",
      summary: "What changed between two versions, by place",
      allow: LOOKERS,
      params: entryPath,
      query: differenceQuery,
      answers: { 200: difference },
      handle: async ({ caller, params, query }) => ({
        status: 200,
        body: await pools.difference(caller, params.pool, params.key, query.from, query.to),
      }),
    }),
  ];
}

function lineageRoutes(parts: PoolRouteParts): Route[] {
  const { pools } = parts;
  return [
    route({
      method: "GET",
      path: "/api/pools/:pool/entries/:key/readers",
      summary: "Which agents and guests have read which version",
      allow: LOOKERS,
      params: entryPath,
      answers: { 200: entryReaders },
      handle: async ({ caller, params }) => ({ status: 200, body: { readers: await pools.readers(caller, params.pool, params.key) } }),
    }),
    route({
      method: "GET",
      path: "/api/pools/:pool/entries/:key/blame",
      summary: "What a version was made from, who read it, and everything made from it",
      allow: LOOKERS,
      params: entryPath,
      query: blameQuery,
      answers: { 200: blame },
      handle: async ({ caller, params, query }) => ({
        status: 200,
        body: await pools.blame(caller, params.pool, params.key, query.version),
      }),
    }),
    route({
      method: "POST",
      path: "/api/pools/:pool/entries/:key/retract",
      summary: "Withdraw a version and everything made from it; an operator's or its author's",
      allow: MEMBERS,
      params: entryPath,
      body: retract,
      answers: { 200: retraction },
      handle: ({ caller, params, body, transact }) =>
        transact("retract", async (tx) => ({
          status: 200,
          body: await retractEntryIn(parts, tx, caller, { ...params, version: body.version }, body.reason),
        })),
    }),
    route({
      method: "POST",
      path: "/api/pools/:pool/entries/:key/endorse",
      summary: "Vouch for a version that rests on input from outside",
      allow: OPERATORS,
      params: entryPath,
      body: endorse,
      answers: { 200: entry },
      handle: ({ caller, params, body, transact }) =>
        transact("endorse", async (tx) => ({
          status: 200,
          body: await pools.endorseIn(tx, caller, params.pool, params.key, body.version, body.reason),
        })),
    }),
  ];
}
