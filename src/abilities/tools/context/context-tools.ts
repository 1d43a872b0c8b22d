import { z } from "zod";
import { versionsToReplace } from "../../../acts/workflows/own-versions.ts";
import { type Entry, type EntryHead, entryKey } from "../../../contract/pools.ts";
import { duration, text } from "../../../contract/text.ts";
import type { Caller } from "../../../kernel/caller.ts";
import { type Failure, isFailure } from "../../../kernel/failure.ts";
import type { Label } from "../../../kernel/label.ts";
import { type Grant, noEntry, refuseUndeclared } from "../../../records/pools/access.ts";
import type { Pools } from "../../../records/pools/pools.ts";
import type { Tx } from "../../../store/engine.ts";
import type { Store } from "../../../store/store.ts";
import { type CallContext, defineTool, type Tool, type ToolOutcome } from "../tool.ts";
import { choosePool, grantOf } from "./choose-pool.ts";

const MAX_WAIT_S = 60;
const POLL_MS = 500;

export interface ContextToolParts {
  readonly store: Store;
  readonly pools: Pools;
}

const pool = z.string().min(1).max(200).optional().describe("Which pool; may be left out where there is only one for you");
const key = entryKey.describe("The entry's name, such as plan or api/decisions");

/** Shared memory. The words are those that outside agents have for it. */
export function contextTools({ store, pools }: ContextToolParts): Tool[] {
  return [
    defineTool({
      name: "context_read",
      description:
        "Read one entry of the memory that all agents share: its value, version, author and note. Read before you write, and keep the version.",
      parameters: z.strictObject({
        key,
        version: z.int().positive().optional().describe("An older version; the current one unless given"),
        full: z.boolean().optional().describe("All of a value that is too large and was shortened to a preview"),
        pool,
      }),
      effect: "pure",
      run: async ({ key: entry, version, full, pool: named }, context) => {
        const name = await choosePool(pools, context, named, "read");
        const found = await pools.read(context.caller, name, entry, { version, full, ...grantOf(context) });
        if (!found) throw noEntry(name, entry);
        return { output: told(found), labels: labelsOf([found]) };
      },
    }),
    defineTool({
      name: "context_write",
      description:
        "Write an entry of the shared memory: decisions, findings, plans that other agents need. To change an entry give the version you have read as if_version; if somebody was faster you are shown the current entry, and decide again.",
      parameters: z.strictObject({
        key,
        value: z
          .unknown()
          .refine((value) => value !== undefined, "expected a value")
          .describe("Any JSON"),
        if_version: z.int().min(0).nullable().optional().describe("The version this replaces; null or 0: only if there is no entry yet"),
        note: text(2_000).optional().describe("Why, for those who read it later"),
        ttl: duration.optional().describe("The entry goes away after this time, such as 30m or 7d"),
        pool,
      }),
      effect: "keyed",
      egress: true,
      runIn: async (tx, { key: entry, value, if_version: ifVersion, note, ttl, pool: named }, context) => {
        const { caller, labels } = context;
        const name = await choosePool(pools, context, named, "write", tx);
        const { grant } = grantOf(context);
        const own = ifVersion === undefined && grant ? await ownVersion(pools, tx, context, name, entry) : undefined;
        const write = {
          key: entry,
          value,
          ...(own === undefined ? {} : { ifVersion: own }),
          ...(ifVersion === undefined ? {} : { ifVersion: ifVersion === 0 ? null : ifVersion }),
          ...(note === undefined ? {} : { note }),
          ...(ttl === undefined ? {} : { ttlMs: ttl }),
        };
        try {
          const [written] = await pools.writeIn(tx, caller, name, [write], { external: labels.has("external"), ...grantOf(context) });
          return writtenOutcome(written as Entry, value);
        } catch (error) {
          const conflict = await pools.conflictIn(tx, caller, error);
          if (!conflict || !isFailure(error)) throw error;
          return conflictOutcome(error, conflict.current);
        }
      },
    }),
    defineTool({
      name: "context_list",
      description: "What there is in the shared memory: the pools you may use, and the entries of one of them without their values.",
      parameters: z.strictObject({
        prefix: z.string().max(256).optional().describe("Only keys that begin so"),
        after: z.string().max(256).optional().describe("`next` of the part before"),
        limit: z.int().min(1).max(1_000).default(100),
        pool,
      }),
      effect: "pure",
      run: async ({ prefix, after, limit, pool: named }, context) => {
        const { grant } = grantOf(context);
        const only = grant && (await choosePool(pools, context, named, "read"));
        const all = (await pools.list(context.caller)).map(({ name, writable }) => ({ name, writable }));
        const known = all.filter(({ name }) => only === undefined || name === only);
        const name = only ?? named ?? (known.length === 1 ? known[0]?.name : undefined);
        if (name === undefined) return { output: { pools: known } };
        if (grant) return declaredOutcome(pools, context.caller, name, grant);
        const { entries, next } = await pools.listEntries(context.caller, name, { prefix, after, limit });
        // A key, too, is words of whoever chose it.
        return { output: { pools: known, pool: name, entries: entries.map(headOf), next }, labels: labelsOf(entries) };
      },
    }),
    defineTool({
      name: "context_watch",
      polls: true,
      description:
        "Wait until an entry of the shared memory is another than you have read or written in this turn, and read it. Comes back with `changed: false` when nothing has happened in time.",
      parameters: z.strictObject({
        key,
        after_version: z.int().min(0).optional().describe("Wait for another version than this; 0: until there is an entry"),
        wait_s: z.int().min(0).max(MAX_WAIT_S).default(30).describe("Wait so many seconds at most"),
        pool,
      }),
      effect: "pure",
      timeoutMs: (MAX_WAIT_S + 15) * 1_000,
      run: async ({ key: entry, after_version: given, wait_s: waitS, pool: named }, context) => {
        const { caller, signal } = context;
        const name = await choosePool(pools, context, named, "read");
        refuseUndeclared(grantOf(context).grant, "reads", entry);
        const until = performance.now() + waitS * 1_000;
        let known = given === undefined ? undefined : [given];
        while (true) {
          const hint = store.wake.version("ledger");
          const { current, seen } = await pools.versions(caller, name, entry);
          known ??= seen.length > 0 ? [...seen] : [current];
          if (!known.includes(current)) return changedOutcome(pools, context.caller, name, entry);
          const left = until - performance.now();
          if (left <= 0) return { output: { changed: false, pool: name, key: entry, version: current === 0 ? null : current } };
          await store.wake.wait("ledger", hint, Math.min(POLL_MS, left), signal);
          signal.throwIfAborted();
        }
      },
    }),
  ];
}

/** What a task may see: the keys that it has declared, whether or not there is something. */
async function declaredOutcome(pools: Pools, caller: Caller, name: string, { reads, writes }: Grant): Promise<ToolOutcome> {
  const keys = [...new Set([...reads, ...writes])];
  const versions = await pools.currentHeads(caller, name, keys);
  return {
    output: { pool: name, reads, writes, entries: versions.map(headOf) },
    labels: labelsOf(versions),
  };
}

/** What an earlier attempt of the same step has written may be replaced without saying so. */
async function ownVersion(pools: Pools, tx: Tx, { caller, task }: CallContext, name: string, key: string): Promise<number | undefined> {
  const replaced = await pools.whatIsReplacedIn(tx, caller, name, [key]);
  const found = replaced.get(key);
  if (!task || !found || found.run === null || found.run === caller.run) return undefined;
  // What was only read is no leave to replace it: here the model can say so itself.
  const versions = await versionsToReplace(tx, task, new Map([[key, { ...found, read: null }]]));
  return versions.get(key);
}

async function changedOutcome(pools: Pools, caller: Parameters<Pools["read"]>[0], name: string, key: string): Promise<ToolOutcome> {
  const entry = await pools.read(caller, name, key);
  if (!entry) return { output: { changed: true, pool: name, key, version: null } };
  return { output: { changed: true, ...told(entry) }, labels: labelsOf([entry]) };
}

/** The value comes back where it is not what was written: a policy of the key has made it from what others wrote. */
function writtenOutcome(entry: Entry, value: unknown): ToolOutcome {
  const same = entry.spilled || JSON.stringify(entry.value) === JSON.stringify(value);
  const { pool: name, key: written, version, label, expiresAt } = entry;
  const about = { pool: name, key: written, version, label, ...(expiresAt === null ? {} : { expiresAt }) };
  return same ? { output: about } : { output: { ...about, value: entry.value }, labels: labelsOf([entry]) };
}

function conflictOutcome({ code, message }: Failure, current: Entry | null): ToolOutcome {
  return {
    output: { error: `${code}: ${message}`, current: current && told(current) },
    failed: true,
    labels: current ? labelsOf([current]) : [],
  };
}

function told(entry: Entry) {
  const { value, note, spilled, deleted } = entry;
  return { ...headOf(entry), note, ...(spilled ? { spilled } : {}), ...(deleted ? { deleted } : { value }) };
}

function headOf({ pool: name, key: entry, version, author, label, at, expiresAt, size, retracted }: EntryHead) {
  return {
    pool: name,
    key: entry,
    version,
    author: author.agent,
    label,
    at: new Date(at).toISOString(),
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    size,
    ...(retracted ? { retracted } : {}),
  };
}

function labelsOf(entries: readonly Pick<EntryHead, "label">[]): Label[] {
  return entries.some(({ label }) => label === "external") ? ["external"] : [];
}
