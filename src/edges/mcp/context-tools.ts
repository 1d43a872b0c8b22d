import { z } from "zod";
import { COMMONS } from "../../contract/guests.ts";
import { type Entry, type EntryHead, entryKey } from "../../contract/pools.ts";
import { text } from "../../contract/text.ts";
import { Failure } from "../../kernel/failure.ts";
import { noEntry } from "../../records/pools/access.ts";
import { inWords, type Tool, type ToolAnswer, tool } from "./tool.ts";

const pool = z.string().min(1).max(200).default(COMMONS).describe(`Which pool; "${COMMONS}" unless you were told another`);
const key = entryKey.describe("The entry's name, such as plan or api/decisions");
const version = z.int().positive();

export const contextTools: readonly Tool[] = [
  tool({
    name: "context_read",
    description:
      "Read one entry of the memory that all agents share: its value, version, author and note. Read before you write, and keep the version.",
    input: z.strictObject({
      pool,
      key,
      version: version.optional().describe("An older version; the current one unless given"),
      full: z.boolean().optional().describe("All of a value that is too large and was shortened to a preview"),
    }),
    changes: false,
    call: async ({ pools }, { caller }, { pool: name, key: entry, version: wanted, full }) => {
      const found = await pools.read(caller, name, entry, { version: wanted, full });
      if (!found) throw noEntry(name, entry);
      return entryAnswer(found);
    },
  }),
  tool({
    name: "context_write",
    description:
      "Write an entry of the shared memory: decisions, findings, plans that other agents need. To change an entry give the version you have read as if_version; if somebody was faster you are shown the current entry, and decide again.",
    input: z.strictObject({
      pool,
      key,
      value: z.unknown().optional().describe("Any JSON"),
      if_version: z.int().min(0).nullable().optional().describe("The version this replaces; null or 0: only if there is no entry yet"),
      note: text(2_000).optional().describe("Why, for those who read it later"),
      ttl_s: z.int().positive().max(3_153_600_000).optional().describe("The entry goes away after so many seconds"),
      remove: z.literal(true).optional().describe("Remove the entry instead of writing a value"),
    }),
    changes: true,
    call: async ({ pools }, { caller }, { pool: name, key: entry, value, if_version: ifVersion, note, ttl_s: ttl, remove }) => {
      if ((value === undefined) !== (remove === true)) throw new Failure("request.malformed", "value: expected a value, or remove: true");
      const [written] = await pools.write(caller, name, [
        {
          key: entry,
          ...(remove ? { remove } : { value }),
          ...(ifVersion === undefined ? {} : { ifVersion: ifVersion === 0 ? null : ifVersion }),
          ...(note === undefined ? {} : { note }),
          ...(ttl === undefined ? {} : { ttlMs: ttl * 1_000 }),
        },
      ]);
      const done = written as Entry;
      return { text: `${nameOf(done)} is now version ${done.version}${remove ? " (removed)" : ""}`, data: { entry: done } };
    },
  }),
  tool({
    name: "context_list",
    description: "What there is in the shared memory: the pools you may use, and the entries of one of them without their values.",
    input: z.strictObject({
      pool,
      prefix: z.string().max(256).optional().describe("Only keys that begin so"),
      after: z.string().max(256).optional().describe("`next` of the part before"),
      limit: z.int().min(1).max(1_000).default(100),
    }),
    changes: false,
    call: async ({ pools }, { caller }, { pool: name, prefix, after, limit }) => {
      const known = await pools.list(caller);
      const { entries, next } = await pools.listEntries(caller, name, { prefix, after, limit });
      const lines = entries.map((entry) => `${entry.key}  version ${entry.version} by ${entry.author.agent}, ${inWords(entry.at)}`);
      const names = known.map((one) => (one.writable ? one.name : `${one.name} (read only)`)).join(", ");
      const more = next === null ? [] : [`there are more: after ${JSON.stringify(next)}`];
      return {
        text: [`pools: ${names}`, `${entries.length} entries in ${name}`, ...lines, ...more].join("\n"),
        data: { pools: known, pool: name, entries, next },
      };
    },
  }),
  tool({
    name: "context_history",
    description: "All versions of an entry with their authors and notes: to see who changed what, and why.",
    input: z.strictObject({
      pool,
      key,
      after: z.int().min(0).optional().describe("Versions after this one"),
      limit: z.int().min(1).max(100).default(20),
    }),
    changes: false,
    call: async ({ pools }, { caller }, { pool: name, key: entry, after, limit }) => {
      const { entries, next } = await pools.history(caller, name, entry, { after, limit });
      const more = next === null ? [] : [`there are more: after ${next}`];
      return { text: [...entries.map(lineOf), ...more].join("\n") || "no versions", data: { entries, next } };
    },
  }),
];

function entryAnswer(entry: Entry): ToolAnswer {
  return { text: `${lineOf(entry)}`, data: { entry } };
}

function lineOf(entry: Entry): string {
  const label = entry.label === "external" ? " (rests on external input)" : "";
  const note = entry.note === null ? "" : ` – ${entry.note}`;
  const gone = entry.retracted ? " RETRACTED" : "";
  const value = entry.deleted ? "(removed)" : JSON.stringify(entry.value);
  return `${nameOf(entry)} version ${entry.version} by ${entry.author.agent}, ${inWords(entry.at)}${label}${gone}${note}\n${value}`;
}

function nameOf(entry: EntryHead): string {
  return `${entry.pool}/${entry.key}`;
}
