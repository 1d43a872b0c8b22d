import { z } from "zod";
import { duration, identifier, text } from "./text.ts";

/** Also the part of a URL. Names with a colon (`run:<id>`) are the gateway's own. */
export const poolName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "a pool's name is 1 to 64 letters, digits, dots, _ and -, and begins with a letter or digit");

/** Keys travel in URLs: `.` and `..` would be taken for steps in a path. */
export const entryKey = text(256).refine((key) => key !== "." && key !== "..", 'a key cannot be "." or ".."');

/** `*` is every agent and guest. */
const identities = z.array(identifier).max(1_000);

export const DEFAULT_MAX_BYTES = 262_144;
export const DEFAULT_QUOTA_BYTES = 64 * 1_048_576;
export const DEFAULT_QUOTA_ENTRIES = 10_000;
/** A version's value beyond this is no entry but a file. */
export const LARGEST_MAX_BYTES = 16 * 1_048_576;

const POLICIES = ["reject", "last_write", "append", "merge", "max", "min", "union"] as const;
export type Policy = (typeof POLICIES)[number];

/** What holds for one key. Lists that are given replace the pool's own. */
export const keyContract = z.strictObject({
  readers: identities.optional(),
  writers: identities.optional(),
  schema: z.union([z.record(z.string(), z.unknown()), z.boolean()]).optional(),
  policy: z.enum(POLICIES).optional(),
  ttl: duration.optional(),
  max_bytes: z.int().min(1).max(LARGEST_MAX_BYTES).optional(),
  overflow: z.enum(["reject", "spill"]).optional(),
  /** What these identities write here counts as trusted, whatever they have read. */
  endorse: identities.optional(),
});

const quota = z.strictObject({
  max_bytes: z.int().min(1).optional(),
  max_entries: z.int().min(1).optional(),
  agent_max_bytes: z.int().min(1).optional(),
  agent_max_entries: z.int().min(1).optional(),
});

const definitionShape = {
  readers: identities.optional(),
  writers: identities.optional(),
  keys: z.record(entryKey, keyContract).optional(),
  quota: quota.optional(),
};
export const poolDefinition = z.strictObject(definitionShape);
export type PoolDefinition = z.output<typeof poolDefinition>;

/** `house:` with nothing after it is a pool that only operators use. */
export const poolsConfig = z.record(
  poolName,
  poolDefinition.nullable().transform((pool) => pool ?? {}),
);
export type PoolsConfig = z.output<typeof poolsConfig>;

export const newPool = z.strictObject({ name: poolName, ...definitionShape });
export type NewPool = z.input<typeof newPool>;

const usage = z.object({ bytes: z.number(), entries: z.number() });

export const pool = z.object({
  name: z.string(),
  kind: z.enum(["config", "made", "run"]),
  state: z.enum(["open", "sealed", "retired"]),
  createdAt: z.number(),
  sealedAt: z.number().nullable(),
  removeAt: z.number().nullable(),
  /** Whether the asker may write some key. */
  writable: z.boolean(),
});
export type Pool = z.output<typeof pool>;
export const poolList = z.object({ pools: z.array(pool) });

/** The definition in full is the operators' and the reader's; others see what they may do. */
export const poolDetails = pool.extend({
  definition: z.record(z.string(), z.unknown()).nullable(),
  usage,
  usageByAgent: z.record(z.string(), usage).nullable(),
});
export type PoolDetails = z.output<typeof poolDetails>;

const LABELS = ["trusted", "external"] as const;
export type Label = (typeof LABELS)[number];

export const author = z.object({
  agent: z.string(),
  run: z.string().nullable(),
  step: z.string().nullable(),
  call: z.string().nullable(),
});

/** What is known of a version without its content. */
export const entryHead = z.object({
  pool: z.string(),
  key: z.string(),
  version: z.number(),
  author,
  label: z.enum(LABELS),
  at: z.number(),
  expiresAt: z.number().nullable(),
  size: z.number(),
  retracted: z.boolean(),
  /** The ledger event that made it. */
  seq: z.number(),
});
export type EntryHead = z.output<typeof entryHead>;

export const entry = entryHead.extend({
  /** Of a spilled value the beginning: `{preview, size, blob}`; ask with `full` for all of it. */
  value: z.unknown(),
  note: z.string().nullable(),
  spilled: z.boolean(),
  /** A tombstone: from this version on there was no entry. */
  deleted: z.boolean(),
  retraction: z.object({ at: z.number(), by: z.string(), reason: z.string() }).nullable(),
});
export type Entry = z.output<typeof entry>;

const note = text(2_000).nullish();
const ttl = duration.nullish();

export const putEntry = z.strictObject({
  value: z.unknown().refine((value) => value !== undefined, "expected a value"),
  ttl,
  note,
});

const batchWrite = z.strictObject({
  key: entryKey,
  value: z.unknown().optional(),
  /** True: the entry goes, and `value` is left out. */
  remove: z.literal(true).optional(),
  /** null: there must be no entry yet. */
  if_version: z.int().min(1).nullable().optional(),
  ttl,
  note,
});
export const MAX_BATCH = 100;
export const batch = z
  .strictObject({
    writes: z.array(batchWrite).max(MAX_BATCH),
    ack: z
      .array(z.strictObject({ id: identifier, fence: z.int() }))
      .max(MAX_BATCH)
      .optional(),
    /** Refuse unless all of these are held, with these fences, until it is written: a holder that was overtaken writes nothing. */
    claims: z
      .array(z.strictObject({ resource: identifier, fence: z.int() }))
      .max(MAX_BATCH)
      .optional(),
    /** Refuse when something that this identity has read was changed meanwhile. That a key was not there counts as read in turns only. */
    if_fresh: z.boolean().optional(),
  })
  .superRefine((body, context) => {
    for (const [index, write] of body.writes.entries()) {
      if ((write.value === undefined) !== (write.remove === true))
        context.addIssue({ code: "custom", path: ["writes", index, "value"], message: "expected a value, or remove: true" });
    }
    if (body.writes.length === 0 && (body.ack?.length ?? 0) === 0)
      context.addIssue({ code: "custom", path: ["writes"], message: "expected at least one write" });
  });
export type Batch = z.input<typeof batch>;
export const batchAnswer = z.object({ entries: z.array(entry) });

export const entryPath = z.object({ pool: z.string().max(256), key: entryKey });

const paging = {
  limit: z.coerce.number().int().min(1).max(1_000).optional(),
};
const versionNumber = z.coerce.number().int().min(1);
const flag = z.enum(["1", "true", "0", "false"]).transform((value) => value === "1" || value === "true");

export const entryQuery = z.object({ version: versionNumber.optional(), full: flag.optional() });
export const listQuery = z.object({ prefix: z.string().max(256).optional(), after: z.string().max(256).optional(), ...paging });
export const entryList = z.object({ entries: z.array(entryHead), next: z.string().nullable() });
export type EntryList = z.output<typeof entryList>;

export const historyQuery = z.object({ after: z.coerce.number().int().min(0).optional(), ...paging });
export const entryHistory = z.object({ entries: z.array(entry), next: z.number().nullable() });
export type EntryHistory = z.output<typeof entryHistory>;

const reader = z.object({ agent: z.string(), run: z.string().nullable(), version: z.number(), at: z.number() });
export const entryReaders = z.object({ readers: z.array(reader) });
export type EntryReader = z.output<typeof reader>;

const versionRef = z.object({ pool: z.string(), key: z.string(), version: z.number() });
export type VersionRef = z.output<typeof versionRef>;
const lineageItem = versionRef.extend({ author, label: z.enum(LABELS), at: z.number(), retracted: z.boolean() });
export type LineageItem = z.output<typeof lineageItem>;

export const blameQuery = z.object({ version: versionNumber.optional() });
export const blame = z.object({
  entry,
  derivedFrom: z.array(lineageItem),
  readBy: z.array(reader),
  descendants: z.array(lineageItem),
  /** Versions that belong to either list and that the asker may not read. */
  hidden: z.number(),
  /** There are more descendants than are followed. */
  truncated: z.boolean(),
});
export type Blame = z.output<typeof blame>;

export const retract = z.strictObject({ version: z.int().min(1), reason: text(2_000) });
export const retraction = z.object({
  retracted: z.array(versionRef),
  /** Whose work rests on what was withdrawn; `run` is null for work outside a turn. */
  rerun: z.array(z.object({ agent: z.string(), run: z.string().nullable(), step: z.string().nullable() })),
  /** Withdrawn, but not for the asker to see. */
  hidden: z.number(),
  /** Descendants in keys the asker may not write: they stay until an operator withdraws them. */
  left: z.number(),
  /** Steps of workflows that it went into, by run; they are what `workflow rerun` should begin from. For operators. */
  workflows: z.array(z.object({ id: z.string(), steps: z.array(z.string()) })).optional(),
});
export type RetractionAnswer = z.output<typeof retraction>;

export const endorse = z.strictObject({ version: z.int().min(1).optional(), reason: text(2_000) });

export const differenceQuery = z.object({ from: versionNumber, to: versionNumber });
const change = z.object({ path: z.string(), before: z.unknown().optional(), after: z.unknown().optional() });
/** `before` or `after` is missing where there was, or is, nothing. Long values are cut to texts. */
export type Change = z.output<typeof change>;
export const difference = z.object({ from: entryHead, to: entryHead, changes: z.array(change), truncated: z.boolean() });
export type Difference = z.output<typeof difference>;

export const snapshotQuery = z.object({
  at: z.coerce.number().int().min(0).optional(),
  prefix: z.string().max(256).optional(),
  after: z.string().max(256).optional(),
  ...paging,
});
export const poolSnapshot = z.object({ at: z.number(), entries: z.array(entry), next: z.string().nullable() });
export type PoolSnapshot = z.output<typeof poolSnapshot>;

export const watchQuery = z.object({ after: z.coerce.number().int().min(0).optional() });
const changedKey = z.object({
  key: z.string(),
  /** The one written, removed, retracted or endorsed. */
  version: z.number(),
  size: z.number().optional(),
  label: z.enum(LABELS).optional(),
  deleted: z.boolean().optional(),
  /** After a retraction: the version that is current now. */
  current: z.number().nullable().optional(),
});
/** One operation on a pool, whole: the ledger's event, as far as the watcher may see it. */
export const poolChange = z.object({
  seq: z.number(),
  at: z.number(),
  type: z.string(),
  actor: z.string(),
  causedBy: z.number().nullable(),
  subject: z.array(z.string()),
  data: z.object({ keys: z.array(changedKey) }),
});
export type PoolChange = z.output<typeof poolChange>;
