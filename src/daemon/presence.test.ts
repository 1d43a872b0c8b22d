import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listNodes } from "../records/nodes/nodes.ts";
import { openStore, type Store } from "../store/store.ts";
import { Presence } from "./presence.ts";

let home: string;
let store: Store;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "guildhall-presence-"));
  store = await openStore(`sqlite:${join(home, "state.db")}`);
});
afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

const node = { id: "n1", name: "alpha", home: "h1", version: "0", url: "http://localhost:1", labels: [], leaseMs: 60_000 };
const silent = { debug() {}, info() {}, warn() {}, error() {} } as never;

test("signs of life that a slow database has kept waiting are one when it answers again, and it tells the newest", async () => {
  let asked = 0;
  let revision = 1;
  const now = () => {
    asked++;
    return { revision, problem: null };
  };
  const presence = new Presence(store, node, now, silent);
  await presence.begin();
  const { promise: free, resolve: answer } = Promise.withResolvers<void>();
  const held = store.transact("slow", () => free);
  asked = 0;
  for (let count = 0; count < 50; count++) {
    presence.beat();
    await Promise.resolve();
  }
  revision = 2;
  presence.drain();
  answer();
  await held;
  await expect.poll(() => listNodes(store.read)).toMatchObject([{ id: "n1", state: "draining", revision: 2 }]);
  expect(asked).toBe(2);
  await presence.end();
  expect(await listNodes(store.read)).toEqual([]);
});
