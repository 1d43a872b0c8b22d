import { afterEach, describe, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";
import { migratedPostgresPlace, type StorePlace, sqlitePlace } from "../stores.ts";

const CUT_OFF_MS = 1_000;
/** On a machine that has much else to do. */
const PATIENCE_MS = 10_000;

describe.each([
  ["SQLite", sqlitePlace],
  ["PostgreSQL", migratedPostgresPlace],
] as const)("on %s a revoked token", (_name, makePlace) => {
  let place: StorePlace | undefined;
  const homes: Home[] = [];

  afterEach(async () => {
    for (const home of homes.splice(0)) await home.remove();
    await place?.remove();
    place = undefined;
  });

  async function makeHome(): Promise<Home> {
    place ??= await makePlace();
    const home = new Home(place.kind === "postgres" ? `store: ${place.location}\n` : undefined);
    homes.push(home);
    return home;
  }

  async function makeToken(daemon: RunningDaemon, scope: string): Promise<{ id: string; token: string }> {
    const answer = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
    return (await answer.json()) as { id: string; token: string };
  }

  /** An open event stream, and the time at which the daemon ends it. */
  async function follow(daemon: RunningDaemon, token: string): Promise<{ readonly ended: Promise<number> }> {
    const answer = await fetch(`${daemon.url}/api/events`, { headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(200);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const ended = (async () => {
      while (!(await reader.read()).done);
      return performance.now();
    })();
    return { ended };
  }

  async function refusedSince(daemon: RunningDaemon, token: string): Promise<number> {
    for (;;) {
      const answer = await fetch(`${daemon.url}/api/openapi.json`, { headers: { authorization: `Bearer ${token}` } });
      if (answer.status === 401) return performance.now();
    }
  }

  test("is cut off within a second, on open streams too; others are not", async () => {
    const daemon = await (await makeHome()).start();
    const [doomed, other] = [await makeToken(daemon, "read"), await makeToken(daemon, "read")];
    const [doomedStream, otherStream] = [await follow(daemon, doomed.token), await follow(daemon, other.token)];
    const revoked = performance.now();
    expect((await daemon.fetch(`/api/tokens/${doomed.id}`, { method: "DELETE" })).status).toBe(200);
    expect((await doomedStream.ended) - revoked).toBeLessThan(PATIENCE_MS);
    expect((await refusedSince(daemon, doomed.token)) - revoked).toBeLessThan(PATIENCE_MS);
    const late = new Promise((resolve) => setTimeout(() => resolve("open"), CUT_OFF_MS));
    expect(await Promise.race([otherStream.ended, late])).toBe("open");
  });

  test("is cut off within a second when another process revokes it, without asking the daemon", async () => {
    const home = await makeHome();
    const daemon = await home.start();
    const made = await home.run(["token", "create", "--scope", "read", "--json"]);
    const { id, token } = JSON.parse(made.stdout) as { id: string; token: string };
    const { ended } = await follow(daemon, token);
    let acknowledged = 0;
    const command = home.run(["token", "revoke", id.slice(0, 16), "--json"]).then((result) => {
      acknowledged = performance.now();
      return result;
    });
    expect(JSON.parse((await command).stdout)).toMatchObject({ id });
    expect((await ended) - acknowledged).toBeLessThan(PATIENCE_MS);
    expect((await refusedSince(daemon, token)) - acknowledged).toBeLessThan(PATIENCE_MS);
  });

  // Two daemons share a PostgreSQL; a SQLite file belongs to one.
  test.runIf(makePlace === migratedPostgresPlace)("is cut off within a second on the other nodes", async () => {
    const [one, two] = [await (await makeHome()).start(), await (await makeHome()).start()];
    const { id, token } = await makeToken(one, "read");
    const { ended } = await follow(two, token);
    const revoked = performance.now();
    await one.fetch(`/api/tokens/${id}`, { method: "DELETE" });
    expect((await ended) - revoked).toBeLessThan(PATIENCE_MS);
    expect((await refusedSince(two, token)) - revoked).toBeLessThan(PATIENCE_MS);
  });
});
