import { afterEach, describe, expect, test } from "vitest";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { LedgerEvent } from "../../src/contract/events.ts";
import type { Schedule } from "../../src/contract/schedules.ts";
import type { Task } from "../../src/contract/tasks.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const CONFIG = "model: offline/demo\nagents:\n  main: { default: true }\n  coder: {}\n";
const homes: Home[] = [];
afterEach(async () => {
  for (const home of homes.splice(0)) await home.remove();
});
const newHome = (): Home => {
  const home = new Home(CONFIG);
  homes.push(home);
  return home;
};

interface Fired {
  readonly time: number | null;
  readonly task: string;
}

/** The first so many events of this type from the beginning on. */
async function eventsOf(daemon: RunningDaemon, types: readonly string[], count: number): Promise<LedgerEvent[]> {
  const stop = new AbortController();
  const response = await daemon.fetch("/api/events?after=0", { signal: stop.signal });
  const events: LedgerEvent[] = [];
  for await (const { data } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
    const event = JSON.parse(data) as LedgerEvent;
    if (!types.includes(event.type)) continue;
    events.push(event);
    if (events.length === count) break;
  }
  stop.abort();
  return events;
}

const firedOf = (events: readonly LedgerEvent[]): Fired[] => events.map(({ data }) => data as Fired);
const post = (daemon: RunningDaemon, path: string, body: unknown = {}) =>
  daemon.fetch(path, { method: "POST", body: JSON.stringify(body) });
const everySecond = { agent: "main", name: "tick", cron: "* * * * * *", goal: "say tick" };

describe("a job every second, on a whole daemon", () => {
  test("fires, and each of its times once, however often the daemon is killed", async () => {
    const home = newHome();
    let daemon = await home.start();
    expect((await post(daemon, "/api/schedules", everySecond)).status).toBe(201);
    for (const fired of [1, 3]) {
      await eventsOf(daemon, ["schedule.fired"], fired);
      await daemon.kill("SIGKILL");
      daemon = await home.start();
    }
    const fired = firedOf(await eventsOf(daemon, ["schedule.fired"], 5));
    expect(new Set(fired.map(({ time }) => time)).size).toBe(5);
    expect(new Set(fired.map(({ task }) => task)).size).toBe(5);
    const ended = await eventsOf(daemon, ["task.completed"], 3);
    expect(new Set(ended.map(({ subject }) => subject[1])).size).toBe(3);
    await daemon.kill("SIGTERM");
  });

  test("is not fired again for a time at which the daemon died right after", async () => {
    const home = newHome();
    const first = await home.start();
    await post(first, "/api/schedules", everySecond);
    await first.kill("SIGKILL");
    const dying = await home.startCrashing("schedule.fired");
    await dying.ended;
    const daemon = await home.start();
    const fired = firedOf(await eventsOf(daemon, ["schedule.fired"], 2));
    expect(new Set(fired.map(({ time }) => time)).size).toBe(2);
    await daemon.kill("SIGTERM");
  });
});

describe("jobs by hand", () => {
  test("over HTTP: whose they are, who may see and change them", async () => {
    const home = newHome();
    const daemon = await home.start();
    const added = await post(daemon, "/api/schedules", { ...everySecond, cron: "0 9 * * 1-5", timezone: "Europe/Zurich" });
    expect(added.status).toBe(201);
    const job = (await added.json()) as Schedule;
    expect(job).toMatchObject({ agent: "main", name: "tick", owner: "operator", paused: false, missed: 0, standing: null });
    expect((await post(daemon, "/api/schedules", { ...everySecond, cron: "@daily" })).status).toBe(200);
    expect((await post(daemon, "/api/schedules", { ...everySecond, cron: "what" })).status).toBe(422);
    expect((await post(daemon, "/api/schedules", { ...everySecond, agent: "nobody" })).status).toBe(404);

    const tokenOf = async (scope: string) => ((await (await post(daemon, "/api/tokens", { scope })).json()) as { token: string }).token;
    const as = (token: string, method: string, path: string, body?: unknown) =>
      daemon.fetch(path, { method, headers: { authorization: `Bearer ${token}` }, ...(body ? { body: JSON.stringify(body) } : {}) });
    const coder = await tokenOf("agent:coder");
    expect(await (await as(coder, "GET", "/api/schedules")).json()).toEqual({ schedules: [], next: null });
    expect((await as(coder, "DELETE", `/api/schedules/${job.id}`)).status).toBe(404);
    expect((await as(coder, "POST", "/api/schedules", everySecond)).status).toBe(403);
    expect((await as(coder, "POST", "/api/schedules", { ...everySecond, agent: "coder" })).status).toBe(422);
    expect((await as(coder, "POST", "/api/schedules", { ...everySecond, agent: "coder", cron: "@daily" })).status).toBe(201);
    const firstPage = (await (await daemon.fetch("/api/schedules?limit=1")).json()) as { schedules: Schedule[]; next: string };
    expect(firstPage).toMatchObject({ schedules: [{ agent: "main" }], next: firstPage.schedules[0]?.id });
    const second = await daemon.fetch(`/api/schedules?limit=1&after=${firstPage.next}`);
    expect(await second.json()).toMatchObject({ schedules: [{ agent: "coder" }], next: null });
    const main = await tokenOf("agent:main");
    expect((await as(main, "POST", `/api/schedules/${job.id}/pause`)).status).toBe(403);
    expect((await as(await tokenOf("guest:eve"), "GET", "/api/schedules")).status).toBe(403);
    expect(((await (await as(await tokenOf("read"), "GET", "/api/schedules")).json()) as { schedules: unknown[] }).schedules).toHaveLength(
      2,
    );

    const ran = await post(daemon, `/api/schedules/${job.id}/run`);
    expect(ran.status).toBe(202);
    const { task } = (await ran.json()) as { task: string };
    await eventsOf(daemon, ["task.completed"], 1);
    expect((await (await daemon.fetch(`/api/tasks/${task}`)).json()) as Task).toMatchObject({
      kind: "schedule",
      from: "operator",
      status: "completed",
    });
    expect((await daemon.fetch(`/api/schedules/${job.id}`, { method: "DELETE" })).status).toBe(200);
    expect((await post(daemon, `/api/schedules/${job.id}/run`)).status).toBe(404);
    await daemon.kill("SIGTERM");
  });

  test("in the terminal: add, list, pause, resume, run, remove", async () => {
    const home = newHome();
    const daemon = await home.start();
    const schedule = async (...args: string[]) => home.run(["schedule", ...args]);
    const added = await schedule("add", "--agent", "main", "--cron", "0 9 * * 1-5", "--tz", "Europe/Zurich", "news", "read", "the", "news");
    expect(added).toMatchObject({ code: 0 });
    expect(added.stdout).toMatch(/^news of main is due \d{4}-\d\d-\d\d \d\d:\d\d:00 \(in /);
    const listed = JSON.parse((await schedule("list", "--json")).stdout) as { schedules: Schedule[] };
    expect(listed.schedules).toMatchObject([{ name: "news", goal: "read the news", cron: "0 9 * * 1-5", timezone: "Europe/Zurich" }]);
    expect((await schedule("pause", "news")).stdout).toBe("news of main is paused\n");
    expect((await schedule("list")).stdout).toMatch(/main +news +0 9 \* \* 1-5 Europe\/Zurich +paused +read the news/);
    expect((await schedule("resume", "main/news")).stdout).toContain("is due");
    const doctor = async () => JSON.parse((await home.run(["doctor", "--json"])).stdout) as { checks: { id: string; found: string }[] };
    const told = async () => (await doctor()).checks.filter(({ id }) => id === "schedules").map(({ found }) => found);
    expect(await told()).toEqual([expect.stringMatching(/^1 job; the next is due 20/)]);
    expect((await home.run(["agents", "archive", "main"])).code).toBe(0);
    expect(await told()).toEqual([expect.stringContaining("main/news stands still: agent main is archived")]);
    expect((await home.run(["agents", "resume", "main"])).code).toBe(0);
    const id = (listed.schedules[0] as Schedule).id;
    expect(JSON.parse((await schedule("run", id.slice(0, 20), "--json")).stdout)).toMatchObject({ id });
    expect((await schedule("remove", id)).code).toBe(0);
    expect((await schedule("remove", id)).code).toBe(1);
    const wrong = await schedule("add", "--agent", "main", "--cron", "99 * * * *", "x", "y");
    expect(wrong).toMatchObject({ code: 2 });
    expect(wrong.stderr).toContain("0 9 * * 1-5");
    await daemon.kill("SIGTERM");
  });
});
