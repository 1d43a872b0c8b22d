import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { openStore, type Store } from "../../src/store/store.ts";
import { type PostgresServer, startPostgres } from "../postgres-server.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { type TcpProxy, tcpProxy } from "../tcp-proxy.ts";

let server: PostgresServer | undefined;
let proxy: TcpProxy | undefined;
let place: StorePlace | undefined;
let store: Store;

async function throughProxy(url: string): Promise<void> {
  place = postgresPlace(url);
  const address = new URL(place.location);
  proxy = await tcpProxy(Number(address.port));
  address.port = String(proxy.port);
  store = await openStore(address.toString());
}

const append = (name: string) =>
  store.transact(name, (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [name] }));
const names = async () => (await store.ledger.read(0, 100)).map((event) => event.subject[0]);

beforeEach(() => {
  server = undefined;
});
afterEach(async () => {
  await store?.close().catch(() => {});
  await proxy?.close();
  await place?.remove().catch(() => {});
  await server?.remove();
});

test("a commit whose answer was lost is found to have happened, and is not repeated (D3)", async () => {
  await throughProxy(inject("postgresUrl"));
  await append("before");
  let cuts = 0;
  (proxy as TcpProxy).onClientData = (data) => {
    if (cuts > 0 || !data.includes("COMMIT")) return "pass";
    cuts++;
    return "cut answer";
  };
  await append("cut");
  expect(cuts).toBe(1);
  expect(await names()).toEqual(["before", "cut"]);
});

test("a transaction that was cut before its commit runs again, once", async () => {
  await throughProxy(inject("postgresUrl"));
  let cuts = 0;
  (proxy as TcpProxy).onClientData = (data) => {
    if (cuts > 0 || !data.includes("pg_advisory_xact_lock_shared")) return "pass";
    cuts++;
    return "cut answer";
  };
  await append("cut");
  expect(cuts).toBe(1);
  expect(await names()).toEqual(["cut"]);
});

test("a follower lives through broken connections without missing or repeating an event", async () => {
  await throughProxy(inject("postgresUrl"));
  const stop = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    for await (const event of store.follow(0, stop.signal)) {
      seen.push(event.subject[0] as string);
      if (seen.length === 30) break;
    }
  })();
  for (let index = 0; index < 30; index++) {
    if (index % 7 === 3) proxy?.cutAll();
    await append(`${index}`);
  }
  await following;
  expect(seen).toEqual(Array.from({ length: 30 }, (_, index) => `${index}`));
});

test("a server that crashes and comes back costs its callers time, not work", { timeout: 60_000 }, async () => {
  server = await startPostgres();
  place = postgresPlace(server.url);
  store = await place.open();
  await append("before");
  await server.stop("immediate");
  const during = append("during");
  await new Promise((resolve) => setTimeout(resolve, 300));
  await server.start();
  await during;
  await append("after");
  expect(await names()).toEqual(["before", "during", "after"]);
});

test("a commit that a crash swallowed is not taken for another transaction that got its number (D1)", { timeout: 60_000 }, async () => {
  server = await startPostgres();
  await throughProxy(server.url);
  const other = await (place as StorePlace).open();
  await append("before");
  let withheld = false;
  (proxy as TcpProxy).onClientData = (data) => {
    if (withheld || !data.includes("COMMIT")) return "pass";
    withheld = true;
    return "withhold";
  };
  const swallowed = append("swallowed").then(
    () => "acknowledged",
    (error: { code?: string }) => error.code,
  );
  while (!withheld) await new Promise((resolve) => setTimeout(resolve, 5));
  await server.stop("immediate");
  await server.start();
  for (let index = 0; index < 5; index++) {
    await other.transact("other", (tx) => other.ledger.append(tx, { type: "daemon.started", actor: "test", subject: [`other ${index}`] }));
  }
  const outcome = await swallowed;
  const there = (await names()).filter((name) => name === "swallowed").length;
  expect(outcome === "acknowledged" ? there : "store.outcome_unknown").toBe(outcome === "acknowledged" ? 1 : outcome);
  expect(there).toBeLessThanOrEqual(1);
});
