import { afterEach, describe, expect, test } from "vitest";
import type { Task } from "../../src/contract/tasks.ts";
import type { WorkflowRun } from "../../src/contract/workflows.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const SOON = { timeout: 30_000, interval: 50 };

const left: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0).reverse()) await leave();
});

const CONFIG = `model: offline/demo
agents:
  main: { default: true }
  boss: { subagents: { max_depth: 1, agents: [helper] } }
  flat: { subagents: { max_depth: 0, agents: [helper] } }
  helper: { subagents: { max_depth: 5, agents: [boss] } }
pools:
  house: { readers: [helper], writers: [helper], keys: { open: { readers: [boss] } } }
limits: { waiting_per_agent: 3 }
`;

describe("a workflow that is started with an agent's token", () => {
  async function living() {
    const home = new Home(CONFIG);
    left.push(() => home.remove());
    const daemon = await home.start();
    const as = async (agent: string): Promise<Record<string, string>> => {
      const { token } = (await (await ask(daemon, "/api/tokens", { scope: `agent:${agent}`, name: agent })).json()) as { token: string };
      return { authorization: `Bearer ${token}` };
    };
    return { daemon, as };
  }

  const ask = (daemon: RunningDaemon, path: string, body?: unknown, headers: Record<string, string> = {}, method = "POST") =>
    daemon.fetch(path, { ...(body === undefined ? {} : { method, body: JSON.stringify(body) }), headers });

  async function ended(daemon: RunningDaemon, workflow: object, headers: Record<string, string>): Promise<WorkflowRun> {
    const { id } = (await (await ask(daemon, "/api/workflows/runs", { workflow }, headers)).json()) as { id: string };
    const read = async () => (await (await ask(daemon, `/api/workflows/runs/${id}`, undefined, headers)).json()) as WorkflowRun;
    await expect.poll(async () => (await read()).endedAt, SOON).not.toBeNull();
    return read();
  }

  test("tells it nothing of a pool that it may not read: not as an output, not as a list, not by a condition", async () => {
    const { daemon, as } = await living();
    for (const [key, value] of [
      ["secret", ["s3cret"]],
      ["open", ["for all"]],
    ])
      expect((await ask(daemon, `/api/pools/house/entries/${key}`, { value }, {}, "PUT")).status).toBe(201);
    const boss = await as("boss");
    const prying = {
      name: "prying",
      pool: "house",
      steps: [
        { id: "list", foreach: "secret", goal: "Say {{item}}" },
        { id: "bit", when: "outputs.secret != null", goal: "It is there" },
      ],
      outputs: ["secret", "open"],
    };
    const seen = await ended(daemon, prying, boss);
    expect(JSON.stringify(seen)).not.toContain("s3cret");
    expect(seen.outputs).toEqual({ open: ["for all"] });
    expect(seen.steps.map(({ id, status }) => [id, status])).toEqual([
      ["list", "failed"],
      ["bit", "skipped"],
    ]);
    expect((await ended(daemon, prying, {})).outputs).toMatchObject({ secret: ["s3cret"], open: ["for all"] });
  });

  test("stands below it: as deep as it may delegate, with it in the chain", async () => {
    const { daemon, as } = await living();
    const one = { name: "one", steps: [{ id: "help", agent: "helper", goal: "x" }] };
    const refused = await ask(daemon, "/api/workflows/runs", { workflow: one }, await as("flat"));
    expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([403, "task.too_deep"]);
    const run = await ended(daemon, one, await as("boss"));
    const again = (await (await ask(daemon, `/api/workflows/runs/${run.id}/rerun`, { from: ["help"] })).json()) as { id: string };
    await expect
      .poll(async () => ((await (await ask(daemon, `/api/workflows/runs/${again.id}`)).json()) as WorkflowRun).status, SOON)
      .toBe("completed");
    for (const id of [run.id, again.id]) {
      const { steps } = (await (await ask(daemon, `/api/workflows/runs/${id}`)).json()) as WorkflowRun;
      const task = (await (await ask(daemon, `/api/tasks/${steps[0]?.task}`)).json()) as Task;
      expect(task).toMatchObject({ agent: "helper", depth: 1 });
    }
  });

  test("is refused where too many turns wait already", async () => {
    const { daemon, as } = await living();
    const boss = await as("boss");
    await ask(daemon, "/api/agents/helper/pause", {});
    const one = { name: "one", steps: [{ id: "help", agent: "helper", goal: "x" }] };
    const statuses: number[] = [];
    for (let count = 0; count < 4; count++) statuses.push((await ask(daemon, "/api/workflows/runs", { workflow: one }, boss)).status);
    expect(statuses).toEqual([202, 202, 202, 429]);
  });
});
