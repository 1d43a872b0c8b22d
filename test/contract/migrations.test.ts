import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { joinNodes, sayAlive } from "../../src/records/nodes/nodes.ts";
import { openBackup } from "../../src/store/backup.ts";
import type { Engine, Reads } from "../../src/store/engine.ts";
import { inspectStore } from "../../src/store/inspect-store.ts";
import { MIGRATIONS, migrate } from "../../src/store/migrations/migrate.ts";
import type { Migration } from "../../src/store/migrations/migration.ts";
import { openEngine } from "../../src/store/store.ts";
import { PLACES, postgresPlace, type StorePlace } from "../stores.ts";

describe.each(PLACES)("migrations on %s", (_name, makePlace) => {
  let place: StorePlace;

  beforeEach(() => {
    place = makePlace();
    // Whoever asks for it first gets one in which there is nothing yet.
    expect(place.location).not.toBe("");
  });
  afterEach(() => place.remove());

  const statements = MIGRATIONS.reduce((sum, migration) => sum + migration.statements.length, 0);

  test("stopped after any statement, it goes on with the next one (D4)", async () => {
    for (let stopAfter = 1; stopAfter <= statements; stopAfter += 3) {
      let done = 0;
      const interrupted = await place
        .open({
          reached: (point) => {
            if (point === "store.migrate.statement-done" && ++done === stopAfter) throw new Error("stopped");
          },
        })
        .catch((error: Error) => error.message);
      if (interrupted === "stopped") continue;
      break;
    }
    const store = await place.open();
    await store.transact("works", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [] }));
    expect(await store.ledger.read(0, 10)).toHaveLength(1);
    const rows = await store.read.all<{ version: number; statement: number }>`select version, statement from migrations`;
    expect(rows).toHaveLength(statements);
  });

  test("many nodes that start together migrate once", async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => place.open()));
    await Promise.all(
      stores.map((store) =>
        store.transact("append", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [] })),
      ),
    );
    expect(await stores[0]?.ledger.read(0, 10)).toHaveLength(4);
  });

  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  const added = {
    version: newest + 1,
    name: "added",
    additive: true,
    statements: ["create table added (id integer primary key)"],
  } as const;
  const broke = { version: newest + 2, name: "broke", statements: ["drop table added"] };

  const broken = { version: newest + 1, name: "broken", statements: ["create table broken (id integer primary key)"] };
  const node = { id: "n1", name: "left", home: "h1", version: "0.1.9", url: "http://10.0.0.1:4270", labels: [], leaseMs: 600 };
  const now = { state: "up", revision: 1, problem: null } as const;

  /** As a program does that knows these migrations. */
  const upgrade = async (migrations: readonly Migration[]): Promise<number> => {
    const engine = await openEngine(place.location, {});
    try {
      return await migrate(engine, noCrashPoints, migrations);
    } finally {
      await engine.close();
    }
  };

  test("an older program starts beside what a newer one has added, says so, and backs up what is there", async () => {
    await (await place.open()).close();
    expect(await upgrade([...MIGRATIONS, added])).toBe(newest + 1);
    const said: unknown[] = [];
    const log = { info: () => {}, error: () => {}, warn: (_message: string, fields: unknown) => said.push(fields) };
    const older = await place.open({ log });
    expect(said).toEqual([{ schema: newest + 1, ours: newest }]);
    expect(await inspectStore(place.location)).toEqual({ exists: true, schema: newest + 1, newest });
    await older.confirmSchema();
    await older.transact("append", (tx) => older.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [] }));
    const folder = mkdtempSync(join(tmpdir(), "guildhall-backup-"));
    await older.backup(join(folder, "b"));
    expect((await openBackup(join(folder, "b"))).header).toMatchObject({ schema: newest + 1 });
    rmSync(folder, { recursive: true });
    // A program of the same version finds nothing to do, and nothing to say.
    await place.tamper(`delete from migrations where version > ${newest}`);
    await place.open({ log });
    expect(said).toHaveLength(1);
  });

  test("an older program is refused where anything newer is not additive, and where nobody says what it is", async () => {
    await (await place.open()).close();
    await upgrade([...MIGRATIONS, added, broke]);
    await expect(place.open()).rejects.toMatchObject({ code: "store.newer_schema" });
    await expect(inspectStore(place.location)).rejects.toMatchObject({ code: "store.newer_schema" });
    await place.tamper(`delete from migrations where version > ${newest}`);
    await place.tamper("insert into migrations (version, statement, name, checksum, at) values (999, 0, 'future', 'x', 1)");
    await expect(place.open()).rejects.toMatchObject({ code: "store.newer_schema" });
  });

  test("what is not additive waits for a node that is dead, and is refused with the names of those that are alive", async () => {
    const store = await place.open();
    await joinNodes(store, { ...node, leaseMs: 60_000 }, now);
    // What is additive asks nobody.
    await upgrade([...MIGRATIONS, added]);
    const alive = setInterval(() => void sayAlive(store, "n1", now), 50);
    const refused = upgrade([...MIGRATIONS, added, broke]).finally(() => clearInterval(alive));
    await expect(refused).rejects.toMatchObject({
      code: "store.older_nodes",
      message: expect.stringContaining("left (0.1.9, http://10.0.0.1:4270)"),
    });
    expect(await store.read.all`select id from added`).toEqual([]);
    // It has stopped saying so, without leaving: as after kill -9.
    await joinNodes(store, node, now);
    await upgrade([...MIGRATIONS, added, broke]);
    await expect(store.read.all`select id from added`).rejects.toThrow();
  });

  test("a node that was overtaken by one of its own version goes on", async () => {
    const store = await place.open();
    const engine = await openEngine(place.location, {});
    let isOvertaken = false;
    const reads: Reads = {
      get: (strings, ...values) => engine.reads.get(strings, ...values),
      all: async (strings, ...values) => {
        const rows = await engine.reads.all(strings, ...values);
        // It has seen what was done so far; now another does the rest, and is at work.
        if (!isOvertaken) {
          isOvertaken = true;
          await upgrade([...MIGRATIONS, broken]);
          await joinNodes(store, { ...node, leaseMs: 60_000 }, now);
        }
        return rows as never;
      },
    };
    const late: Engine = {
      dialect: engine.dialect,
      reads,
      wake: engine.wake,
      transact: (label, body, isolation) => engine.transact(label, body, isolation),
      single: (label, body) => engine.single(label, body),
      snapshot: (body) => engine.snapshot(body),
      hintOthers: (topic) => engine.hintOthers(topic),
      close: () => engine.close(),
    };
    expect(await migrate(late, noCrashPoints, [...MIGRATIONS, broken])).toBe(newest + 1);
    await engine.close();
  });

  test("a node that joined while others migrated does not go on with what it cannot bear", async () => {
    const store = await place.open();
    await upgrade([...MIGRATIONS, added]);
    await store.confirmSchema();
    await upgrade([...MIGRATIONS, added, broke]);
    await expect(store.confirmSchema()).rejects.toMatchObject({ code: "store.newer_schema" });
  });

  test("a database of 0.1.0 learns what is additive", async () => {
    await (await place.open()).close();
    await place.tamper("alter table migrations drop column is_additive");
    expect(await inspectStore(place.location)).toEqual({ exists: true, schema: newest, newest });
    await (await place.open()).close();
    await upgrade([...MIGRATIONS, added]);
    const rows = await place.tamper("select distinct version, is_additive from migrations where is_additive = 1");
    expect(rows).toEqual([{ version: newest + 1, is_additive: 1 }]);
  });

  test("a statement that was changed after it was applied is refused", async () => {
    await (await place.open()).close();
    await place.tamper("update migrations set checksum = 'other' where version = 1 and statement = 3");
    await expect(place.open()).rejects.toMatchObject({ code: "store.changed_schema" });
  });

  test("a later migration runs on a database with data", async () => {
    const store = await place.open();
    await store.transact("append", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [] }));
    await store.close();
    const engine = await openEngine(place.location, {});
    const version = (MIGRATIONS.at(-1)?.version ?? 0) + 1;
    await migrate(engine, noCrashPoints, [
      ...MIGRATIONS,
      { version, name: "next", statements: ["alter table ledger add column extra text"] },
    ]);
    expect(await engine.reads.all`select extra from ledger`).toHaveLength(1);
    await engine.close();
  });

  // SQLite has one writer, who waits for nobody's locks.
  test.skipIf(makePlace !== postgresPlace)("a migration that must wait for a table keeps nobody else waiting for it", async () => {
    const store = await place.open();
    await upgrade(MIGRATIONS);
    const holder = new pg.Client(new URL(place.location).toString().replace(/\?.*/, ""));
    await holder.connect();
    await holder.query(`set search_path to "${new URL(place.location).searchParams.get("schema")}"`);
    await holder.query("begin; lock table lanes in row share mode");
    const wants = { version: newest + 1, name: "wants", additive: true, statements: ["alter table lanes add column extra text"] } as const;
    const migrating = upgrade([...MIGRATIONS, wants]);
    await expect.poll(() => place.tamper("select 1 from pg_locks where not granted and relation = 'lanes'::regclass")).not.toEqual([]);
    const asked = performance.now();
    await store.read.all`select * from lanes`;
    const waited = performance.now() - asked;
    await holder.query("commit");
    await holder.end();
    await migrating;
    // A statement like any other waits for ten.
    expect(waited).toBeLessThan(8_000);
    await store.read.all`select extra from lanes`;
  });

  describe.skipIf(makePlace !== postgresPlace)("an index on a database with rows", () => {
    const byName = {
      version: newest + 1,
      name: "by name",
      additive: true,
      statements: ["create index lanes_by_name on lanes (tail)", "alter table lanes add column extra text"],
    } as const;
    const states = () => place.tamper("select indisvalid as whole from pg_index where indexrelid = to_regclass('lanes_by_name')");
    const identity = () => place.tamper("select to_regclass('lanes_by_name')::oid as oid");

    /** A connection of somebody else, in the midst of writing a lane. */
    const writer = async (): Promise<pg.Client> => {
      const client = new pg.Client(new URL(place.location).toString().replace(/\?.*/, ""));
      await client.connect();
      await client.query(`set search_path to "${new URL(place.location).searchParams.get("schema")}"`);
      await client.query("begin; insert into lanes values ('held', 0, 0)");
      return client;
    };

    test("is made while others write, by one of two nodes that start", async () => {
      await (await place.open()).close();
      const held = await writer();
      const first = upgrade([...MIGRATIONS, byName]);
      // It waits for whoever was writing before it, and nobody waits for it.
      await expect.poll(states).toEqual([{ whole: false }]);
      const second = upgrade([...MIGRATIONS, byName]);
      const begun = await identity();
      for (let index = 0; index < 10; index++) await place.tamper(`insert into lanes values ('free ${index}', 0, 0)`);
      expect(await states()).toEqual([{ whole: false }]);
      await held.query("commit");
      await held.end();
      expect(await Promise.all([first, second])).toEqual([newest + 1, newest + 1]);
      expect(await identity()).toEqual(begun);
      expect(await states()).toEqual([{ whole: true }]);
      expect(await place.tamper(`select statement from migrations where version = ${newest + 1} order by statement`)).toHaveLength(2);
    });

    test("is begun anew where somebody left it half-made, and taken as it is where it was made and not recorded", async () => {
      await (await place.open()).close();
      await place.tamper("insert into lanes values ('one', 7, 0), ('two', 7, 0)");
      await expect(place.tamper("create unique index concurrently lanes_by_name on lanes (head)")).rejects.toThrow(
        "could not create unique index",
      );
      expect(await states()).toEqual([{ whole: false }]);
      await upgrade([...MIGRATIONS, byName]);
      expect(await states()).toEqual([{ whole: true }]);
      const made = await identity();
      await place.tamper(`delete from migrations where version = ${newest + 1} and statement = 0`);
      await upgrade([...MIGRATIONS, byName]);
      expect(await identity()).toEqual(made);
    });
  });
});
