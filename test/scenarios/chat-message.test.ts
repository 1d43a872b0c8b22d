import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const WHOLE_LINE = ["message.admitted", "route.decided", "turn.started", "turn.completed", "reply.sent"];

/** Line (a) of the architecture, through the front door: a real process, a real database, HTTP. */
describe.each(["SQLite", "PostgreSQL"])("a chat message on %s", (kind) => {
  let home: Home;
  let place: StorePlace | undefined;
  beforeEach(() => {
    place = kind === "PostgreSQL" ? postgresPlace() : undefined;
    home = new Home(place && `store: ${place.location}\n`);
  });
  afterEach(async () => {
    await home.remove();
    await place?.remove();
  });

  test("goes the whole way, and the conversation continues after a restart", async () => {
    const daemon = await home.start();
    const admission = await daemon.send({ id: "1", text: "good morning" });
    expect(admission).toMatchObject({ agent: "main", sessionKey: "agent:main:test:dm:p", duplicate: false });
    const run = await daemon.finished(admission.runId);
    expect(run).toMatchObject({
      status: "completed",
      reply: { text: expect.stringContaining("Hello!") },
      decision: { tier: "default" },
      error: null,
    });
    expect((await daemon.eventsUntil(run.id, "reply.sent")).map((event) => event.type)).toEqual(WHOLE_LINE);
    expect((await daemon.kill("SIGTERM")).code).toBe(0);

    const next = await home.start();
    const second = await next.finished((await next.send({ id: "2", text: "the sky is blue" })).runId);
    expect(second.reply?.text).toContain("message 2 of our conversation");
  });

  test("that comes many times at once runs once", async () => {
    const daemon = await home.start();
    const admissions = await Promise.all(Array.from({ length: 20 }, () => daemon.send({ id: "same" })));
    expect(new Set(admissions.map(({ runId }) => runId)).size).toBe(1);
    expect(admissions.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    const { runId } = admissions[0] as { runId: string };
    expect((await daemon.eventsUntil(runId, "reply.sent")).map((event) => event.type)).toEqual(WHOLE_LINE);
  });

  test("of another account or platform with the same id is another message", async () => {
    const daemon = await home.start();
    const admissions = [
      await daemon.send({ id: "1" }),
      await daemon.send({ id: "1", account: "work" }),
      await daemon.send({ id: "1", platform: "other" }),
    ];
    expect(new Set(admissions.map(({ runId }) => runId)).size).toBe(3);
  });

  test("that was acknowledged is answered exactly once, also when the daemon is killed right after", async () => {
    const daemon = await home.start();
    const ids = ["a", "b", "c", "d"];
    const runs = await Promise.all(ids.map(async (id) => (await daemon.send({ id, peer: id })).runId));
    await daemon.kill("SIGKILL");
    const next = await home.start();
    for (const [index, id] of ids.entries()) {
      const runId = runs[index] as string;
      expect(await next.send({ id, peer: id })).toMatchObject({ runId, duplicate: true });
      await exactlyOnce(next, runId);
    }
  }, 60_000);

  test.each(["message.admitted", "turn.answered", "turn.committed"])(
    "is answered exactly once when the daemon dies at %s",
    async (point) => {
      const dying = await home.startCrashing(point);
      await dying.send({ id: "1" }).catch(() => {});
      expect((await dying.ended).code).toBeNull();
      const next = await home.start();
      const { runId, duplicate } = await next.send({ id: "1" });
      expect(duplicate).toBe(true);
      await exactlyOnce(next, runId);
    },
    60_000,
  );

  async function exactlyOnce(daemon: RunningDaemon, runId: string): Promise<void> {
    expect(await daemon.finished(runId)).toMatchObject({ status: "completed", reply: { text: expect.stringContaining("Hello!") } });
    const types = (await daemon.eventsUntil(runId, "reply.sent")).map((event) => event.type);
    expect(types.filter((type) => type === "turn.completed")).toHaveLength(1);
    expect(types.filter((type) => type === "message.admitted")).toHaveLength(1);
    expect(types.at(-1)).toBe("reply.sent");
  }
});
