import type { Entry, EntryHead, Label, LineageItem } from "../../contract/pools.ts";
import { code } from "../../store/sql.ts";

/** A version that was not retracted, without its name. */
export interface StandingVersion {
  readonly version: number;
  readonly value: string | null;
  readonly blob: string | null;
  readonly size: number;
  readonly agent: string;
  readonly run: string;
  readonly step: string | null;
  readonly call: string | null;
  readonly external: number;
  readonly note: string | null;
  readonly at: number;
  readonly expires_at: number | null;
  readonly seq: number;
}

export interface VersionRow extends StandingVersion {
  readonly pool: string;
  readonly key: string;
  readonly retracted_at: number | null;
  readonly retracted_by: string | null;
  readonly retract_reason: string | null;
}

/** For queries that may be built; those that must be quick spell the columns out. */
export const VERSION_COLUMNS =
  code(`v.pool, v.key, v.version, v.value, v.blob, v.size, v.agent, v.run, v.step, v.call, v.external, v.note, v.at,
  v.expires_at, v.seq, v.retracted_at, v.retracted_by, v.retract_reason`);

/** The same without the content: `value` only tells whether there is one. */
export const LINEAGE_COLUMNS =
  code(`v.pool, v.key, v.version, case when v.value is null then null else '' end as value, v.blob, v.size, v.agent, v.run,
  v.step, v.call, v.external, v.note, v.at, v.expires_at, v.seq, v.retracted_at, v.retracted_by, v.retract_reason`);

export function labelOf(external: number | boolean): Label {
  return external ? "external" : "trusted";
}

export function headOf(row: VersionRow): EntryHead {
  return {
    pool: row.pool,
    key: row.key,
    version: row.version,
    author: { agent: row.agent, run: row.run === "" ? null : row.run, step: row.step, call: row.call },
    label: labelOf(row.external),
    at: row.at,
    expiresAt: row.expires_at,
    size: row.size,
    retracted: row.retracted_at !== null,
    seq: row.seq,
  };
}

export function entryOf(row: VersionRow): Entry {
  const entry = standingEntry(row.pool, row.key, row);
  if (row.retracted_at === null) return entry;
  return {
    ...entry,
    retracted: true,
    retraction: { at: row.retracted_at, by: row.retracted_by ?? "", reason: row.retract_reason ?? "" },
  };
}

/** Spelled out, not built from its head: it is made for every read and every write. */
export function standingEntry(pool: string, key: string, row: StandingVersion): Entry {
  return {
    pool,
    key,
    value: row.value === null ? null : JSON.parse(row.value),
    version: row.version,
    author: { agent: row.agent, run: row.run === "" ? null : row.run, step: row.step, call: row.call },
    label: labelOf(row.external),
    note: row.note,
    at: row.at,
    expiresAt: row.expires_at,
    size: row.size,
    retracted: false,
    seq: row.seq,
    spilled: row.blob !== null,
    deleted: row.value === null,
    retraction: null,
  };
}

export function lineageOf(row: VersionRow): LineageItem {
  const { pool, key, version, author, label, at, retracted } = headOf(row);
  return { pool, key, version, author, label, at, retracted };
}
