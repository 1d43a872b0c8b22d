import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { restoreBackup } from "../../src/store/restore-backup.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";

describe.each(PLACES)("backup of %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let folder: string;
  let file: string;
  const others: StorePlace[] = [];

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    folder = mkdtempSync(join(tmpdir(), "guildhall-backup-"));
    file = join(folder, "backup.gz");
  });
  afterEach(async () => {
    for (const other of others.splice(0)) await other.remove();
    await place.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const elsewhere = (make: () => StorePlace): StorePlace => {
    const other = make();
    others.push(other);
    return other;
  };

  test.each(PLACES)("restores on %s with everything in it, and goes on above every number given out", async (_target, makeTarget) => {
    const lease = await store.leases.acquire(["account"], "old", 60_000);
    await store.transact("fill", async (tx) => {
      for (let index = 0; index < 700; index++) {
        await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: ["n", `${index}`], data: { index } });
      }
      await store.queue.enqueue(tx, { kind: "test", payload: "in lane", lane: ["l"] });
      await store.queue.enqueue(tx, { kind: "test", payload: "behind it", lane: ["l"] });
      await store.search.put(tx, { collection: "c", id: "1", scope: ["a"], text: "shared memory they can\u2028trust \u2029 \0 naïve" });
      await store.blobs.put(tx, ["owner"], Uint8Array.of(0, 1, 255));
    });
    await store.sealer.seal("test");
    const [claimed] = await store.queue.claim("old", 1, 60_000);
    await store.backup(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const target = elsewhere(makeTarget);
    await restoreBackup(target.location, file);
    const restored = await target.open();
    const events = await restored.ledger.read(0, 1_000);
    expect(events.filter((event) => event.type === "daemon.started").map((event) => event.data)).toEqual(
      Array.from({ length: 700 }, (_, index) => ({ index })),
    );
    expect(events.at(-1)?.type).toBe("store.restored");
    expect(await restored.sealer.verify()).toMatchObject({ ok: true, events: 700 });
    expect((await restored.search.find({ collection: "c", scopes: [["a"]], text: "trusted", limit: 5 })).map((hit) => hit.id)).toEqual([
      "1",
    ]);
    const [blob] = await restored.read.all<{ hash: string }>`select hash from blobs`;
    expect(await restored.blobs.get(blob?.hash as string)).toEqual(Uint8Array.of(0, 1, 255));

    const newer = await restored.transact("new item", (tx) => restored.queue.enqueue(tx, { kind: "other", payload: null }));
    expect(newer).toBeGreaterThan(1_000_000_000_000);
    await restored.transact("gone again", (tx) => restored.queue.cancel(tx, newer));
    const [again] = await restored.queue.claim("new", 5, 60_000);
    expect(again).toMatchObject({ payload: "in lane" });
    expect(again?.fence).toBeGreaterThan((claimed?.fence as number) + 1_000_000);
    await restored.queue.settleAll([again as NonNullable<typeof again>]);
    expect((await restored.queue.claim("new", 5, 60_000)).map((work) => work.payload)).toEqual(["behind it"]);
    await restored.transact("new work", (tx) => restored.queue.enqueue(tx, { kind: "test", payload: "new" }));
    await restored.leases.sweep(0);
    const renewed = await restored.leases.acquire(["another"], "new", 60_000);
    expect(renewed.held && lease.held && renewed.fence > lease.fence + 1_000_000).toBe(true);
  });

  test("taken under load it holds one moment: every transaction whole or not at all (D6)", async () => {
    let running = true;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let index = 0; running; index++) {
        await store.transact("pair", async (tx) => {
          const [seq] = await store.ledger.append(tx, { type: "turn.started", actor: `w${writer}`, subject: ["pair", `${index}`] });
          await store.queue.enqueue(tx, { kind: "pair", payload: seq });
        });
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await store.backup(file);
    running = false;
    await Promise.all(writers);
    const target = elsewhere(makePlace);
    await restoreBackup(target.location, file);
    const restored = await target.open();
    const events = (await restored.ledger.read(0, 100_000)).filter((event) => event.type === "turn.started");
    const items = await restored.read.all<{ payload: string }>`select payload from work`;
    expect(events.length).toBeGreaterThan(0);
    expect(items.map((item) => Number(item.payload)).sort((a, b) => a - b)).toEqual(events.map((event) => event.seq));
  });

  test("a place that holds data is not overwritten", async () => {
    await store.backup(file);
    await store.transact("data", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [] }));
    await expect(restoreBackup(place.location, file)).rejects.toMatchObject({ code: "backup.target_not_empty" });
    expect(await store.ledger.read(0, 10)).toHaveLength(1);
  });

  test.each([
    ["cut off", (bytes: Buffer) => bytes.subarray(0, bytes.length - 40)],
    ["whole but short of rows", (bytes: Buffer) => gzipSync(`${gunzipSync(bytes).toString().split("\n").slice(0, 4).join("\n")}\n`)],
    ["no backup at all", () => Buffer.from("hello")],
    [
      "of a newer program",
      (bytes: Buffer) =>
        gzipSync(
          gunzipSync(bytes)
            .toString()
            .replace(/"schema":\d+/, '"schema":999'),
        ),
    ],
  ])("a file that is %s is refused and the target left alone", async (_how, spoil) => {
    await store.transact("fill", async (tx) => {
      for (let index = 0; index < 50; index++)
        await store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [`${index}`] });
    });
    await store.backup(file);
    writeFileSync(file, spoil(readFileSync(file)));
    const target = elsewhere(makePlace);
    await expect(restoreBackup(target.location, file)).rejects.toMatchObject({
      code: expect.stringMatching(/backup.unreadable|store.newer_schema/),
    });
    const empty = await target.open();
    expect(await empty.ledger.read(0, 10)).toEqual([]);
  });
});
