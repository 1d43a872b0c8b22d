import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../store/store.ts";
import { AccountLeases } from "./account-leases.ts";

test("whoever begins to wait just when nobody waits any more is asked for too", async () => {
  const home = mkdtempSync(join(tmpdir(), "guildhall-leases-"));
  const store = await openStore(`sqlite:${join(home, "state.db")}`);
  const leaving = new AbortController();
  const parts = { store, clock: { now: () => Date.now() }, leaseMs: 60_000, node: "n" };
  const leases = new AccountLeases({ ...parts, log: { info: () => {}, warn: () => {}, error: () => {} } });
  onTestFinished(async () => {
    leaving.abort();
    await leases.settled();
    await store.close();
    rmSync(home, { recursive: true, force: true });
  });
  const wait = async (account: string) => (await leases.wait({ platform: "test", account }, leaving.signal))?.end(true);
  for (let steps = 0; steps < 40; steps++) {
    const first = wait(`first ${steps}`);
    await leases.wait({ platform: "test", account: `second ${steps}` }, leaving.signal).then((held) => void held?.end(true));
    for (let step = 0; step < steps; step++) await Promise.resolve();
    await wait(`third ${steps}`);
    await first;
  }
  expect(leaving.signal.aborted).toBe(false);
}, 5_000);
