import { afterEach, describe, expect, test } from "vitest";
import { migratedPostgresPlace, type StorePlace, sqlitePlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const LEASE_MS = 15_000;

describe.each([
  ["SQLite", sqlitePlace],
  ["PostgreSQL", migratedPostgresPlace],
] as const)("a daemon on %s is killed in the middle of a request", (_name, makePlace) => {
  let place: StorePlace;
  let home: Home;

  afterEach(async () => {
    await home.remove();
    await place.remove();
  });

  const ask = (daemon: RunningDaemon): Promise<Response> =>
    daemon.fetch("/api/tokens", { method: "POST", headers: { "idempotency-key": "k" }, body: JSON.stringify({ scope: "guest:ann" }) });
  const made = async (daemon: RunningDaemon): Promise<{ id: string }[]> =>
    ((await (await daemon.fetch("/api/tokens")).json()) as { tokens: { id: string }[] }).tokens;

  test.each([
    ["before the effect", "idempotency.begun"],
    ["with the effect written and not committed", "idempotency.finish.before,store.commit.before"],
    ["with the effect committed and not answered", "idempotency.finish.before,store.commit.after"],
    ["just before the answer", "idempotency.finish.before,store.acknowledge.before"],
  ])("%s: the same request again makes it once (E1)", async (_moment, point) => {
    place = await makePlace();
    // A home has its own SQLite file; the place is then only here to be removed.
    home = new Home(place.kind === "postgres" ? `store: ${place.location}\n` : undefined);
    const first = await home.startCrashing(point);
    await expect(ask(first)).rejects.toThrow();
    await first.ended;

    const second = await home.start();
    // Another node cannot know that the first is dead, before its lease has ended.
    if (place.kind === "postgres") await place.elapse(LEASE_MS + 1);
    const [answer, again] = [await ask(second), await ask(second)];
    expect([answer.status, again.status]).toEqual([201, 201]);
    const token = (await answer.json()) as { id: string; token: string };
    expect(await again.json()).toEqual(token);
    expect((await made(second)).map(({ id }) => id)).toEqual([token.id]);
    const own = await fetch(`${second.url}/api/openapi.json`, { headers: { authorization: `Bearer ${token.token}` } });
    expect(own.status).toBe(200);
  });
});
