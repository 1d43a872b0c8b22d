import { describe, type ExpectStatic, type TestContext, test } from "vitest";
import { migratedPostgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const WHOLE_LINE = ["message.admitted", "route.decided", "turn.started", "model.answered", "turn.completed"];

/** Line (a) of the architecture, through the front door: a real process, a real database, HTTP. Most of the time is spent waiting for leases. */
describe.concurrent.each(["SQLite", "PostgreSQL"])("a chat message on %s", (kind) => {
  /** As many homes as nodes are wanted, on one database; SQLite has one node. */
  async function nodes(count: number, { onTestFinished }: TestContext): Promise<Home[]> {
    const place = kind === "PostgreSQL" ? await migratedPostgresPlace() : undefined;
    const homes = Array.from({ length: count }, () => new Home(place && `store: ${place.location}\n`));
    onTestFinished(async () => {
      for (const home of homes) await home.remove();
      await place?.remove();
    });
    return homes;
  }
  const one = async (context: TestContext): Promise<Home> => (await nodes(1, context))[0] as Home;

  test("goes the whole way, and the conversation continues after a restart", async (context) => {
    const { expect } = context;
    const home = await one(context);
    const daemon = await home.start();
    const admission = await daemon.send({ id: "1", text: "good morning" });
    expect(admission).toMatchObject({ agent: "main", sessionKey: "agent:main:test:dm:p", duplicate: false });
    const run = await daemon.finished(admission.runId);
    expect(run).toMatchObject({ status: "completed", reply: { text: expect.stringContaining("Hello!") }, error: null });
    expect((await daemon.eventsUntil(run.id, "turn.completed")).map((event) => event.type)).toEqual(WHOLE_LINE);
    expect((await daemon.kill("SIGTERM")).code).toBe(0);

    const next = await home.start();
    const second = await next.finished((await next.send({ id: "2", text: "the sky is blue" })).runId);
    expect(second.reply?.text).toContain("message 2 of our conversation");
  });

  test("that comes many times at once runs once", async (context) => {
    const { expect } = context;
    const daemons = await Promise.all((await nodes(kind === "PostgreSQL" ? 2 : 1, context)).map((home) => home.start()));
    const admissions = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (daemons[index % daemons.length] as RunningDaemon).send({ id: "same" })),
    );
    expect(new Set(admissions.map(({ runId }) => runId)).size).toBe(1);
    expect(admissions.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    for (const daemon of daemons) {
      const events = await daemon.eventsUntil(admissions[0]?.runId as string, "turn.completed");
      expect(events.map((event) => event.type)).toEqual(WHOLE_LINE);
    }
  });

  test("of another account or platform with the same id is another message", async (context) => {
    const daemon = await (await one(context)).start();
    const admissions = [
      await daemon.send({ id: "1" }),
      await daemon.send({ id: "1", account: "work" }),
      await daemon.send({ id: "1", platform: "other" }),
    ];
    context.expect(new Set(admissions.map(({ runId }) => runId)).size).toBe(3);
  });

  test("that was acknowledged is answered exactly once, also when the daemon is killed right after", async (context) => {
    const { expect } = context;
    const home = await one(context);
    const daemon = await home.start();
    const ids = ["a", "b", "c", "d"];
    const runs = await Promise.all(ids.map(async (id) => (await daemon.send({ id, peer: id })).runId));
    await daemon.kill("SIGKILL");
    const next = await home.start();
    for (const [index, id] of ids.entries()) {
      const runId = runs[index] as string;
      expect(await next.send({ id, peer: id })).toMatchObject({ runId, duplicate: true });
      await answeredOnce(next, runId, expect);
    }
  }, 60_000);

  const points = ["message.admitted", "turn.answered", "turn.committed"];
  test.for(points)("is answered exactly once when the daemon dies at %s", { timeout: 60_000 }, async (point, context) => {
    const { expect } = context;
    const home = await one(context);
    const dying = await home.startCrashing(point);
    await dying.send({ id: "1" }).catch(() => {});
    expect((await dying.ended).code).toBeNull();
    const next = await home.start();
    const { runId, duplicate } = await next.send({ id: "1" });
    expect(duplicate).toBe(true);
    await answeredOnce(next, runId, expect);
  });

  async function answeredOnce(daemon: RunningDaemon, runId: string, expect: ExpectStatic): Promise<void> {
    expect(await daemon.finished(runId)).toMatchObject({ status: "completed", reply: { text: expect.stringContaining("Hello!") } });
    const types = (await daemon.eventsUntil(runId, "turn.completed")).map((event) => event.type);
    expect(types.filter((type) => type === "turn.completed")).toHaveLength(1);
    expect(types.filter((type) => type === "message.admitted")).toHaveLength(1);
    expect(types.at(-1)).toBe("turn.completed");
  }
});
