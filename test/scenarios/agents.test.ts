import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, type TestContext, test } from "vitest";
import type { AgentView, ConfigRevisionList } from "../../src/contract/agents.ts";
import { DAEMON_DATABASES, postgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const SOON = { timeout: 15_000, interval: 50 };

/** Agents as tenants of a real daemon, on a real database: what is written in the config is what happens. */
describe.each(DAEMON_DATABASES)("agents on %s", (kind) => {
  function tenant(config: string, { onTestFinished }: TestContext): { home: Home; write(text: string): void } {
    const place = kind === "PostgreSQL" ? postgresPlace() : undefined;
    const head = place ? `store: ${place.location}\n` : "";
    const home = new Home(head + config);
    onTestFinished(async () => {
      await home.remove();
      await place?.remove();
    });
    // As editors do it: a new file in the place of the old one.
    const write = (text: string): void => {
      writeFileSync(join(home.path, "next.yaml"), head + text);
      renameSync(join(home.path, "next.yaml"), join(home.path, "guildhall.yaml"));
    };
    return { home, write };
  }
  const agents = async (daemon: RunningDaemon): Promise<Record<string, AgentView>> => {
    const { agents: all } = (await (await daemon.fetch("/api/agents")).json()) as { agents: AgentView[] };
    return Object.fromEntries(all.map((agent) => [agent.id, agent]));
  };
  const revisions = async (daemon: RunningDaemon): Promise<ConfigRevisionList> =>
    (await (await daemon.fetch("/api/config/revisions")).json()) as ConfigRevisionList;
  const states = async (daemon: RunningDaemon): Promise<Record<string, string>> =>
    Object.fromEntries(Object.entries(await agents(daemon)).map(([id, { state }]) => [id, state]));
  const verb = async (daemon: RunningDaemon, id: string, word: string): Promise<AgentView> => {
    const response = await daemon.fetch(`/api/agents/${id}/${word}`, { method: "POST" });
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.json()) as AgentView;
  };

  const tokenFor = async (daemon: RunningDaemon, scope: string): Promise<{ token: string }> =>
    (await (await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) })).json()) as { token: string };

  test("a changed file is applied as one new revision, and the same text again as none", async (context) => {
    const { expect } = context;
    const { home, write } = tenant("agents: { main: {} }\n", context);
    const daemon = await home.start();
    write("agents: { main: {}, coder: { roles: [engineer] } }\n");
    await expect.poll(() => states(daemon), SOON).toEqual({ main: "active", coder: "active" });
    const run = await daemon.finished((await daemon.send({ id: "1", agent: "coder" })).runId);
    expect(run).toMatchObject({ agent: "coder", status: "completed" });
    const { current, revisions: all } = await revisions(daemon);
    expect(current.number).toBe(2);
    expect(all.map(({ number, state, changes }) => [number, state, changes])).toEqual([
      [2, "applied", ["agent coder added"]],
      [1, "applied", ["as it was when the daemon started"]],
    ]);
    await daemon.kill("SIGTERM");
    const next = await home.start();
    expect((await revisions(next)).current).toMatchObject({ number: 2, hash: current.hash });
    expect((await revisions(next)).revisions).toHaveLength(2);
  });

  test("a broken section takes out its own agent alone, at reload and at start, and says where and what to write", async (context) => {
    const { expect } = context;
    const { home, write } = tenant("agents: { main: {}, coder: {} }\n", context);
    const daemon = await home.start();
    write("agents:\n  main: {}\n  coder:\n    modle: offline/demo\n");
    await expect.poll(() => states(daemon), SOON).toEqual({ main: "active", coder: "quarantined" });
    const line = kind === "PostgreSQL" ? 5 : 4;
    expect((await agents(daemon)).coder?.because).toContain(`guildhall.yaml:${line}:5: agents.coder.modle: unknown key`);
    expect((await daemon.finished((await daemon.send({ id: "1" })).runId)).status).toBe("completed");
    const refused = await daemon.run((await daemon.send({ id: "2", agent: "coder" })).runId);
    expect(refused).toMatchObject({ agent: "coder", sessionKey: null, status: "refused", error: { code: "agent.quarantined" } });
    expect((await revisions(daemon)).revisions[0]).toMatchObject({ state: "applied", quarantined: ["coder"] });
    const { stderr } = await daemon.kill("SIGTERM");
    expect(stderr).toMatch(new RegExp(`an agent is quarantined.*agent="coder".*guildhall\\.yaml:${line}:5.*Write model instead`));

    const next = await home.start();
    expect(await states(next)).toEqual({ main: "active", coder: "quarantined" });
    expect((await next.finished((await next.send({ id: "3" })).runId)).status).toBe("completed");
    write("agents:\n  main: {}\n  coder:\n    model: offline/demo\n");
    await expect.poll(() => states(next), SOON).toEqual({ main: "active", coder: "active" });
    expect((await next.finished((await next.send({ id: "4", agent: "coder" })).runId)).status).toBe("completed");
  });

  test("a file that cannot be used leaves everything as it is, and is reported once", async (context) => {
    const { expect } = context;
    const { home, write } = tenant("agents: { main: {} }\n", context);
    const daemon = await home.start();
    write("agents: { main: {} }\nunrouted: sometimes\n");
    await expect.poll(async () => (await revisions(daemon)).revisions[0]?.state, SOON).toBe("rejected");
    const { current, revisions: all } = await revisions(daemon);
    expect(current.number).toBe(1);
    expect(all[0]?.problems[0]).toMatchObject({ path: "unrouted", line: kind === "PostgreSQL" ? 3 : 2, column: 11 });
    expect((await daemon.finished((await daemon.send({ id: "1" })).runId)).status).toBe("completed");
    write("agents: { main: {} }\n");
    write("agents: { main: {}, b: {} }\n");
    await expect.poll(() => states(daemon), SOON).toEqual({ main: "active", b: "active" });
    expect((await daemon.kill("SIGTERM")).stderr.match(/the config was rejected/g)).toHaveLength(1);
    write("nonsense: 1\n");
    const refused = await home.run(["start", "--port", "0"]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/guildhall\.yaml:\d:1: nonsense: unknown key/) });
  });

  test("what comes for a paused agent waits, survives kill -9, and is answered once when it goes on, in order", async (context) => {
    const { expect } = context;
    const { home } = tenant("agents: { main: {}, tired: {} }\n", context);
    const daemon = await home.start();
    expect(await verb(daemon, "tired", "pause")).toMatchObject({ id: "tired", state: "paused" });
    const [first, second] = [await daemon.send({ id: "1", agent: "tired" }), await daemon.send({ id: "2", agent: "tired" })];
    const main = await daemon.finished((await daemon.send({ id: "3" })).runId);
    expect(main.status).toBe("completed");
    await expect.poll(async () => (await daemon.run(first.runId)).status, SOON).toBe("waiting");
    expect((await agents(daemon)).tired).toMatchObject({ state: "paused", waiting: 2, running: 0 });
    await daemon.kill("SIGKILL");

    const next = await home.start();
    await sleep(1_500);
    expect((await next.run(first.runId)).status).toBe("waiting");
    expect(await verb(next, "tired", "resume")).toMatchObject({ state: "active" });
    const [one, two] = [await next.finished(first.runId), await next.finished(second.runId)];
    expect([one.status, two.status]).toEqual(["completed", "completed"]);
    expect(two.reply?.text).toBeTruthy();
    const types = (await next.eventsUntil(first.runId, "turn.completed")).map(({ type }) => type);
    expect(types.filter((type) => type === "turn.completed")).toHaveLength(1);
    expect(types).toContain("turn.held");
    expect(await one.endedAt).toBeLessThanOrEqual(two.endedAt as number);
  });

  test.for(["config.stored,config.stored", "config.stored,turns.woken"])(
    "a waiting turn is answered once also when the daemon dies while it is held, and again at %s",
    // Three processes start one after the other, and two of them from their source.
    { timeout: 90_000 },
    async (points, context) => {
      const { expect } = context;
      const { home } = tenant("agents: { main: {}, tired: { state: paused } }\n", context);
      const holding = await home.startCrashing("config.stored,turn.held");
      const { runId } = await holding.send({ id: "1", agent: "tired" });
      await holding.ended;
      const waking = await home.startCrashing(points);
      expect((await waking.run(runId)).status).toBe("waiting");
      await waking.fetch("/api/agents/tired/resume", { method: "POST" }).catch(() => {});
      await waking.ended;
      const daemon = await home.start();
      expect(await daemon.finished(runId)).toMatchObject({ status: "completed", agent: "tired" });
      const types = (await daemon.eventsUntil(runId, "turn.completed")).map(({ type }) => type);
      expect(types.filter((type) => type === "turn.completed")).toHaveLength(1);
      expect((await agents(daemon)).tired).toMatchObject({ state: "active", running: 0, waiting: 0 });
    },
  );

  test("an archived agent refuses what comes, fails what has waited, and its token stands for nobody", async (context) => {
    const { expect } = context;
    const { home } = tenant("agents:\n  main: {}   # stays\n  old: {}\n", context);
    const daemon = await home.start();
    const { token } = await tokenFor(daemon, "agent:old");
    const asOld = (): Promise<number> =>
      fetch(`${daemon.url}/api/claims`, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);
    expect(await asOld()).toBe(200);
    await verb(daemon, "old", "pause");
    expect(await asOld()).toBe(200);
    const waiting = await daemon.send({ id: "1", agent: "old" });
    await expect.poll(async () => (await daemon.run(waiting.runId)).status, SOON).toBe("waiting");
    await verb(daemon, "old", "archive");
    expect(await asOld()).toBe(401);
    expect(await daemon.finished(waiting.runId)).toMatchObject({ status: "failed", error: { code: "agent.archived" } });
    const refused = await daemon.run((await daemon.send({ id: "2", agent: "old" })).runId);
    expect(refused).toMatchObject({ status: "refused", error: { code: "agent.archived" } });
    expect(readFileSync(join(home.path, "guildhall.yaml"), "utf8")).toContain(
      "agents:\n  main: {}   # stays\n  old: { state: archived }\n",
    );
  });

  test("a command waits until the daemon has taken its change up; readers and agents see what they may", async (context) => {
    const { expect } = context;
    const { home } = tenant("agents: { main: {} }\n", context);
    const daemon = await home.start();
    const added = await home.run(["agents", "add", "coder", "--json"]);
    expect(JSON.parse(added.stdout)).toMatchObject({ id: "coder", daemon: "applied", revision: 2 });
    expect(Object.keys(await agents(daemon))).toEqual(["main", "coder"]);
    expect(JSON.parse((await home.run(["agents", "list", "--json"])).stdout)).toMatchObject({
      revision: 2,
      agents: [{ id: "main" }, { id: "coder" }],
    });
    expect((await home.run(["agents", "pause", "coder"])).stderr).toContain("the daemon has taken it up (revision 3)");

    const as = async (scope: string, path: string, init: RequestInit = {}) => {
      const { token } = await tokenFor(daemon, scope);
      return fetch(`${daemon.url}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });
    };
    expect(await (await as("read", "/api/agents")).json()).toMatchObject({
      agents: [{ id: "main", state: "active" }, { state: "paused" }],
    });
    expect(await (await as("agent:main", "/api/agents")).json()).toEqual({ agents: [{ id: "main" }, { id: "coder" }], revision: 3 });
    expect((await as("guest:g", "/api/agents/main")).status).toBe(403);
    expect((await as("read", "/api/agents/main/pause", { method: "POST" })).status).toBe(403);
    expect((await as("agent:main", "/api/config/revisions")).status).toBe(403);
    expect((await daemon.fetch("/api/agents/mian")).status).toBe(404);
    expect((await daemon.fetch("/api/agents/coder/restart", { method: "POST" })).status).toBe(200);
  });

  test("secrets stand in no revision, and a changed .env is taken up", async (context) => {
    const { expect } = context;
    const secret = "literal-secret-in-the-file";
    const { home } = tenant(`agents:\n  main: { env: { KEY: ${secret}, OTHER: \${FROM_ENV} } }\n`, context);
    writeFileSync(join(home.path, ".env"), "FROM_ENV=first-value-of-it\n", { mode: 0o600 });
    const daemon = await home.start();
    writeFileSync(join(home.path, ".env"), "FROM_ENV=second-value-of-it\n", { mode: 0o600 });
    await expect.poll(async () => (await revisions(daemon)).current.number, SOON).toBe(2);
    const told = JSON.stringify(await revisions(daemon));
    expect(told).toContain("agent main changed: env");
    expect(told).not.toMatch(/literal-secret|value-of-it/);
    expect((await daemon.kill("SIGTERM")).stderr).not.toMatch(/literal-secret|value-of-it/);
  });

  test("SOUL.md is who the agent is, from the next turn on, unless it is a link", async (context) => {
    const { expect } = context;
    const { home } = tenant("personality: everybody's\nagents: { main: {}, own: { personality: its own } }\n", context);
    const daemon = await home.start();
    const personality = async (id: string): Promise<unknown> =>
      ((await (await daemon.fetch(`/api/agents/${id}`)).json()) as { personality: unknown }).personality;
    expect(await personality("main")).toBe("everybody's");
    for (const id of ["main", "own"]) {
      mkdirSync(join(home.path, "agents", id), { recursive: true });
      writeFileSync(join(home.path, "agents", id, "SOUL.md"), "from the soul\n");
    }
    expect(await personality("main")).toBe("from the soul");
    expect(await personality("own")).toBe("its own");
    writeFileSync(join(home.path, "secret.md"), "somebody else's");
    renameSync(join(home.path, "agents", "main", "SOUL.md"), join(home.path, "old.md"));
    symlinkSync(join(home.path, "secret.md"), join(home.path, "agents", "main", "SOUL.md"));
    expect(await personality("main")).toBe("everybody's");
  });
});
