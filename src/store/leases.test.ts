import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { openStore, type Store } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "guildhall-leases-"));
let store: Store | undefined;

afterEach(async () => {
  await store?.close();
  rmSync(folder, { recursive: true, force: true });
});

test("at the very millisecond of its expiry a lease is no longer held, and free", async () => {
  let now = 1_000_000;
  store = await openStore(`sqlite:${join(folder, "state.db")}`, { clock: { now: () => now } });
  const lease = await store.leases.acquire(["x"], "first", 500);
  if (!lease.held) throw new Error("not held");
  now += 499;
  expect(await store.leases.renew(["x"], lease.fence, 500)).toBe(now + 500);
  now += 500;
  expect(await store.leases.renew(["x"], lease.fence, 500)).toBeNull();
  await expect(store.transact("guard", (tx) => (store as Store).leases.guard(tx, ["x"], lease.fence))).rejects.toMatchObject({
    code: "fence.stale",
  });
  expect((await store.leases.acquire(["x"], "second", 500)).held).toBe(true);
});
