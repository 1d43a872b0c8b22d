import { describe, type TestContext, test } from "vitest";
import type { Task, TaskHit, TaskList } from "../../src/contract/tasks.ts";
import { DAEMON_DATABASES, postgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";
import { Agent } from "./mcp-clients.ts";

const CONFIG = "agents:\n  main: {default: true, subagents: {agents: [coder]}}\n  coder: {guests: [jane]}\n  away: {state: paused}\n";

function homeOn(kind: string, { onTestFinished }: TestContext): Home {
  const place = kind === "PostgreSQL" ? postgresPlace() : undefined;
  const home = new Home(place ? `${CONFIG}store: ${place.location}\n` : CONFIG);
  onTestFinished(async () => {
    await home.remove();
    await place?.remove();
  });
  return home;
}

async function post(daemon: RunningDaemon, path: string, body: unknown, headers: Record<string, string> = {}) {
  const answer = await daemon.fetch(path, { method: "POST", body: JSON.stringify(body), headers });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as never };
}

async function tokenOf(daemon: RunningDaemon, scope: string): Promise<Record<string, string>> {
  const { body } = await post(daemon, "/api/tokens", { scope });
  return { authorization: `Bearer ${(body as { token: string }).token}` };
}

/** A real process, a real database, the offline model. */
describe.each(DAEMON_DATABASES)("tasks through a daemon on %s", (kind) => {
  test("are given over HTTP, waited for, found, and told on the command line", async (context) => {
    const { expect } = context;
    const home = homeOn(kind, context);
    const daemon = await home.start();
    const opened = await post(daemon, "/api/tasks", { agent: "coder", goal: "Remember the word platypus" });
    expect(opened).toMatchObject({ status: 202, body: { agent: "coder", from: "operator", kind: "api", parent: null, depth: 0 } });
    const waited = await post(daemon, "/api/tasks", { agent: "coder", goal: "Say something about otters", wait_ms: 20_000 });
    expect(waited).toMatchObject({ status: 200, body: { status: "completed", result: expect.stringContaining("otters"), error: null } });
    const { id, usage } = waited.body as Task;
    expect(usage).toMatchObject({ calls: 1 });

    const read = (await (await daemon.fetch(`/api/tasks/${id.slice(0, 18)}`)).json()) as Task;
    expect(read).toMatchObject({ id, status: "completed", endedAt: expect.any(Number), run: expect.any(String) });
    const { hits } = (await (await daemon.fetch("/api/tasks/search?q=otters")).json()) as { hits: TaskHit[] };
    expect(hits).toMatchObject([{ id, agent: "coder", status: "completed", snippet: expect.stringContaining("**otters**") }]);
    const { tasks } = (await (await daemon.fetch("/api/tasks?agent=coder")).json()) as TaskList;
    expect(tasks.map((task) => task.id)).toEqual([id, (opened.body as Task).id]);

    const searched = await home.run(["task", "search", "otters", "--json"]);
    expect([searched.code, JSON.parse(searched.stdout).hits[0].id]).toEqual([0, id]);
    const byId = await home.run(["task", "search", id.slice(0, 12)]);
    expect([byId.code, byId.stdout]).toEqual([0, expect.stringContaining(`**${id.slice(0, 12)}**`)]);
    expect(await home.run(["task", "search", "giraffes"])).toMatchObject({ code: 1, stdout: "" });
    const listed = await home.run(["task", "list", "--agent", "coder"]);
    expect(listed.stdout).toMatch(new RegExp(`^task +agent +from[\\s\\S]*\\n${id} +coder +operator +completed`));
    const shown = await home.run(["task", "show", id.slice(0, 18)]);
    expect(shown.stdout).toMatch(new RegExp(`^${id} coder completed after [\\s\\S]*Say something about otters`));
    expect(await home.run(["task", "show", "1zzz"])).toMatchObject({ code: 1, stderr: expect.stringContaining("request.not_found") });
    const asked = await home.run(["task", "open", "coder", "Say", "something", "--wait", "2m", "--json"]);
    expect(JSON.parse(asked.stdout)).toMatchObject({ status: "completed", goal: "Say something" });
    expect(await home.run(["task", "list", "--limit", "0"])).toMatchObject({ code: 2, stderr: expect.stringContaining("limit") });
    const away = await home.run(["task", "open", "away", "wait", "--wait", "1s"]);
    expect([away.code, away.stderr]).toEqual([0, expect.stringContaining(`${away.stdout.trim()} is queued`)]);
  });

  test("the same key is the same task, and what is cancelled stays so", async (context) => {
    const { expect } = context;
    const daemon = await homeOn(kind, context).start();
    const key = { "idempotency-key": "once" };
    const first = await post(daemon, "/api/tasks", { agent: "away", goal: "wait for me" }, key);
    const second = await post(daemon, "/api/tasks", { agent: "away", goal: "wait for me" }, key);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect(second.body).toEqual(first.body);
    expect((await post(daemon, "/api/tasks", { agent: "away", goal: "another" }, key)).status).toBe(409);
    const { id } = first.body as Task;
    const late = await post(daemon, "/api/tasks", { agent: "away", goal: "wait a moment", wait_ms: 50 });
    expect(late.status).toBe(202);
    expect(await post(daemon, `/api/tasks/${id}/cancel`, {})).toMatchObject({ status: 200, body: { id, status: "cancelled" } });
    expect(await post(daemon, `/api/tasks/${id}/cancel`, {})).toMatchObject({ status: 409, body: { error: { code: "task.over" } } });
    const { hits } = (await (await daemon.fetch("/api/tasks/search?q=wait&status=cancelled")).json()) as { hits: TaskHit[] };
    expect(hits.map((hit) => hit.id)).toEqual([id]);
  });

  test("an agent gives tasks to itself and to those it may delegate to, a guest to those that name it", async (context) => {
    const { expect } = context;
    const daemon = await homeOn(kind, context).start();
    const main = await tokenOf(daemon, "agent:main");
    const coder = await tokenOf(daemon, "agent:coder");
    const jane = await tokenOf(daemon, "guest:jane");
    const joe = await tokenOf(daemon, "guest:joe");
    const reader = await tokenOf(daemon, "read");
    const give = async (agent: string, headers: Record<string, string>) => {
      const { status, body } = await post(daemon, "/api/tasks", { agent, goal: "hello" }, headers);
      return [status, (body as { error?: { code: string } }).error?.code ?? (body as Task).from];
    };
    expect(await give("coder", main)).toEqual([202, "main"]);
    expect(await give("main", main)).toEqual([202, "main"]);
    expect(await give("away", main)).toEqual([403, "task.not_delegate"]);
    expect(await give("nobody", main)).toEqual([403, "task.not_delegate"]);
    expect(await give("main", coder)).toEqual([403, "task.not_delegate"]);
    expect(await give("coder", jane)).toEqual([202, "jane"]);
    expect(await give("main", jane)).toEqual([403, "request.forbidden"]);
    expect(await give("nobody", jane)).toEqual([403, "request.forbidden"]);
    expect(await give("coder", joe)).toEqual([403, "request.forbidden"]);
    expect(await give("coder", reader)).toEqual([403, "request.forbidden"]);
    expect((await post(daemon, "/api/tasks", { agent: "nobody", goal: "x" })).status).toBe(404);
    expect((await post(daemon, "/api/tasks", { agent: "coder", goal: "" })).status).toBe(422);
  });
});

test("an outside agent gives tasks over MCP where it is named, checks, finds and ends its own, and nobody else's", async (context) => {
  const { expect } = context;
  const daemon = await homeOn("SQLite", context).start();
  const tokenFor = async (scope: string) => ((await post(daemon, "/api/tokens", { scope })).body as { token: string }).token;
  const jane = await Agent.http(daemon, await tokenFor("guest:jane"));
  const joe = await Agent.http(daemon, await tokenFor("guest:joe"));
  context.onTestFinished(async () => {
    await jane.client.close();
    await joe.client.close();
  });
  const opened = await jane.call("task_open", { agent: "coder", goal: "Say something about otters", wait_s: 20 });
  const { id } = opened.data.task as Task;
  expect(opened).toMatchObject({ refused: false, data: { task: { agent: "coder", from: "jane", status: "completed" } } });
  expect((await jane.call("task_check", { id: id.slice(0, 18) })).text).toContain(`${id} (coder) is completed:`);
  expect((await jane.call("task_search", { query: "otters" })).text).toContain("**otters**");
  expect(await jane.call("task_cancel", { id })).toMatchObject({ refused: true, error: { code: "task.over" } });
  expect(await joe.call("task_open", { agent: "coder", goal: "x" })).toMatchObject({ refused: true, error: { code: "request.forbidden" } });
  expect(await joe.call("task_check", { id })).toMatchObject({ refused: true, error: { code: "request.not_found" } });
  expect(await joe.call("task_cancel", { id })).toMatchObject({ refused: true, error: { code: "request.not_found" } });
  expect((await joe.call("task_search", { query: "otters" })).text).toBe("nothing was found");
});
