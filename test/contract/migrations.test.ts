import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { MIGRATIONS, migrate } from "../../src/store/migrations/migrate.ts";
import { openEngine } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

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

  test("a database of a newer program is refused and left alone", async () => {
    await (await place.open()).close();
    await place.tamper("insert into migrations (version, statement, name, checksum, at) values (999, 0, 'future', 'x', 1)");
    await expect(place.open()).rejects.toMatchObject({ code: "store.newer_schema" });
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
});
