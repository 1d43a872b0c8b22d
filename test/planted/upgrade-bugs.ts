import type { PlantedBug } from "./bugs.ts";

const BESIDE = "src/store/migrations/beside-others.ts";
const MIGRATE = "src/store/migrations/migrate.ts";
const MAKE_INDEX = "src/store/postgres/make-index.ts";
const onPostgres = { tests: ["test/contract/migrations.test.ts"], filter: "PostgreSQL" };
const HOME_ID = "src/daemon/home-id.ts";
const inDaemon = { tests: ["src/daemon/daemon.test.ts"] };
const onSqlite = { tests: ["test/contract/migrations.test.ts"], filter: "SQLite" };

export const UPGRADE_BUGS: readonly PlantedBug[] = [
  {
    name: "an older program starts on whatever a newer one has made of the database",
    file: BESIDE,
    from: "version > ours && is_additive === 0",
    to: "version > ours && is_additive < 0",
    ...onSqlite,
  },
  {
    name: "an older program is refused beside what was only added",
    file: BESIDE,
    from: "version > ours && is_additive === 0",
    to: "version > ours",
    ...onSqlite,
  },
  {
    name: "what is not additive is made under the hands of older nodes",
    file: MIGRATE,
    from: "missing.length > 0 && !isEmpty && !migration.additive",
    to: "missing.length > 0 && isEmpty && !migration.additive",
    ...onSqlite,
  },
  {
    name: "a node that starts together with others of its version takes them for older ones",
    file: BESIDE,
    from: "left.length > 0 && !(await isDone());",
    to: "left.length > 0;",
    ...onSqlite,
  },
  {
    name: "every migration is recorded as additive",
    file: MIGRATE,
    from: "${additive ? 1 : 0})`",
    to: "${additive ? 1 : 1})`",
    ...onSqlite,
  },
  {
    name: "an index keeps others from writing while it is made",
    file: MAKE_INDEX,
    from: 'replace(/ index /, " index concurrently ")',
    to: 'replace(/ index /, " index ")',
    ...onPostgres,
  },
  {
    name: "an index that was left half-made is taken for a whole one",
    file: MAKE_INDEX,
    from: "if (left.rows[0]?.whole) return;",
    to: "if (left.rows[0]) return;",
    ...onPostgres,
  },
  {
    name: "an index that was made and not recorded is in the way of the next start",
    file: MAKE_INDEX,
    from: "if (left.rows[0]?.whole) return;\n    if (left.rows[0])",
    to: "if (left.rows[0] && !left.rows[0].whole)",
    ...onPostgres,
  },
  {
    name: "the clone of a machine has the id of the home that it was cloned from",
    file: HOME_ID,
    from: 'if (known !== "" && there === here)',
    to: 'if (known !== "")',
    tests: ["src/daemon/home.test.ts"],
  },
  {
    name: "the copy of a home on the same machine has its id",
    file: HOME_ID,
    from: "`${machine}:${realpathSync(home)}`",
    to: "machine",
    tests: ["src/daemon/home.test.ts"],
  },
  {
    name: "signs of life pile up while the database is slow",
    file: "src/daemon/presence.ts",
    from: "if (this.#isWaiting) return;",
    to: "",
    tests: ["src/daemon/presence.test.ts"],
  },
  {
    name: "a node refuses requests before its proxy has heard that it stops",
    file: "src/daemon/readiness.ts",
    from: "await sleep(NOTICE_MS);",
    to: "await sleep(0);",
    ...inDaemon,
  },
  {
    name: "a daemon whose last words are refused goes on listening",
    file: "src/daemon/daemon.ts",
    from: `    } finally {
      await parts.disposeAsync();
    }`,
    to: `    } finally {
    }
    await parts.disposeAsync();`,
    ...inDaemon,
  },
];
