import type { PlantedBug } from "./bugs.ts";

const FRESHNESS = "src/records/pools/freshness.ts";
const HEADS = "src/records/pools/heads.ts";
const READ_LOG = "src/records/pools/read-log.ts";
const rests = { tests: ["test/contract/pools-freshness.test.ts"] };
const writers = { tests: ["test/contract/pools-concurrency.test.ts"] };

/** Bugs in what a write rests on, and in who writes at the same time. */
export const POOL_BUGS: readonly PlantedBug[] = [
  {
    name: "what a write rests on is not held until it is committed",
    file: FRESHNESS,
    from: "  await lockHeads(store, tx, [...rests, ...proposed]);\n",
    to: "",
    ...rests,
    filter: "PostgreSQL",
  },
  {
    name: "what a write rests on is not held, among many runs",
    file: FRESHNESS,
    from: "  await lockHeads(store, tx, [...rests, ...proposed]);\n",
    to: "",
    tests: ["test/contract/pools-serializable.test.ts"],
  },
  {
    name: "what is only read is not held",
    file: FRESHNESS,
    from: "lockHeads(store, tx, [...rests, ...proposed])",
    to: "lockHeads(store, tx, proposed)",
    ...writers,
    filter: "V4 V8",
  },
  {
    name: "an absence is not held, as it has no head",
    file: FRESHNESS,
    from: "[...rests, ...proposed]);",
    to: "[...rests.filter(({ version }) => version > 0), ...proposed]);",
    ...rests,
    filter: "is not there",
  },
  {
    name: "what is stale is looked for, and written all the same",
    file: FRESHNESS,
    from: "  if (answer.fresh) return;\n",
    to: "  if (answer.fresh || tx.open) return;\n",
    tests: ["test/contract/pools-serializable.test.ts"],
  },
  {
    name: "what a run reads while its write waits makes the write fresh",
    file: FRESHNESS,
    from: "freshness(store, registry, tx, caller, rests, proposed)",
    to: "freshness(store, registry, tx, caller, await lastReads(tx, caller, log), proposed)",
    ...rests,
  },
  {
    name: "a run may write over what it has not seen",
    file: FRESHNESS,
    from: "return isOwn && !(await hasReplacedUnseen(reads, current, caller))",
    to: "return isOwn",
    ...rests,
  },
  {
    name: "an absence counts only where a log is kept",
    file: "src/records/pools/read-entries.ts",
    from: "else if (options.reads || caller.run !== null) await",
    to: "else if (options.reads) await",
    ...rests,
  },
  {
    name: "the commit of one call forgets what another has read",
    file: READ_LOG,
    from: "of this.#flushed.get(tx) ?? []) {",
    to: "of this.pending) {",
    ...rests,
  },
  {
    name: "reads of one key are recorded in the order of their versions",
    file: READ_LOG,
    from: "compare(a.pool, b.pool) || compare(a.key, b.key));",
    to: "compare(a.pool, b.pool) || compare(a.key, b.key) || a.version - b.version);",
    ...rests,
  },
  {
    name: "heads are read without a lock",
    file: HEADS,
    from: "where pool = ${pool} and key = ${key} for update`",
    to: "where pool = ${pool} and key = ${key}`",
    ...writers,
    filter: "PostgreSQL",
  },
];
