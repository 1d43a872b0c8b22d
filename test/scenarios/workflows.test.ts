import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { RerunPlan, WorkflowRun, WorkflowRunList } from "../../src/contract/workflows.ts";
import { modelServer, type SeenRequest } from "../model-server.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const EXAMPLE = new URL("../../docs/examples/stripe-client.yaml", import.meta.url).pathname;
const SOON = { timeout: 30_000, interval: 50 };
const LONG = 120_000;

const left: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const leave of left.splice(0).reverse()) await leave();
});

function house(config: string): Home {
  const home = new Home(config);
  left.push(() => home.remove());
  return home;
}

const OFFLINE = "model: offline/demo\nagents: { main: { default: true }, researcher: {}, coder: {} }\n";

async function scripted(
  script: (request: SeenRequest) => ReturnType<Extract<Parameters<typeof modelServer>[0], (...args: never) => unknown>>,
) {
  const server = await modelServer(script);
  left.push(() => server.close());
  const config = `providers: { test: { type: openai-compatible, base_url: ${server.url} } }
model: test/any
agents: { main: { default: true }, researcher: {}, coder: {} }
`;
  return { server, home: house(config) };
}

const api = async <Answer>(daemon: RunningDaemon, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  return (await (await daemon.fetch(path, { ...init, headers })).json()) as Answer;
};
const runs = (daemon: RunningDaemon) => api<WorkflowRunList>(daemon, "/api/workflows/runs");
const runOf = (daemon: RunningDaemon, id: string) => api<WorkflowRun>(daemon, `/api/workflows/runs/${id}`);
const waitFor = async (daemon: RunningDaemon, id: string, status: string): Promise<WorkflowRun> => {
  await expect.poll(async () => (await runOf(daemon, id)).status, SOON).toBe(status);
  return runOf(daemon, id);
};
const states = ({ steps }: WorkflowRun): Record<string, string> => Object.fromEntries(steps.map(({ id, status }) => [id, status]));

/** As `tail --subject workflow/ID` and a dashboard hear of it. */
async function eventsOf(daemon: RunningDaemon, id: string): Promise<string[]> {
  const response = await daemon.fetch(`/api/events?after=0&subject=workflow/${id}`);
  const types: string[] = [];
  for await (const { event } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
    types.push(event);
    if (event === "workflow.completed") break;
  }
  return types;
}

/** `workflow run --json` while somebody else approves the step that waits for a person. */
async function runApproved(home: Home, daemon: RunningDaemon, file: string, gate: string): Promise<WorkflowRun> {
  const running = home.run(["workflow", "run", file, "--input", "api=Stripe", "--json"]);
  await expect.poll(async () => (await runs(daemon)).runs[0]?.status, SOON).toBe("waiting");
  const [open] = (await runs(daemon)).runs;
  const approved = await home.run(["workflow", "approve", (open?.id ?? "").slice(0, 12), gate, "--note", "looks good"]);
  expect(approved).toMatchObject({ code: 0, stdout: expect.stringContaining(`${gate} approved`) });
  const { code, stdout, stderr } = await running;
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as WorkflowRun;
}

/** What the model was told in one request, all of it. */
const told = ({ body }: SeenRequest): string => JSON.stringify(body.messages);
const goalOf = (request: SeenRequest): string => /Goal: ([^\\]+)/.exec(told(request))?.[1] ?? "";

describe("the example of a payment client", () => {
  test(
    "runs on the offline model, waits for a person, and hands out what was made",
    async () => {
      const home = house(OFFLINE);
      const daemon = await home.start();
      const run = await runApproved(home, daemon, EXAMPLE, "ship");
      expect(states(run)).toEqual({ research: "completed", implement: "completed", test: "completed", ship: "completed" });
      expect(run.steps.map(({ agent }) => agent)).toEqual(["researcher", "coder", "coder", "main"]);
      expect(run.outputs.client).toContain("Build the payment client");
      expect(run).toMatchObject({
        status: "completed",
        name: "stripe-client",
        usage: { calls: expect.any(Number) },
        pool: `run:${run.id}`,
      });
      const shown = await home.run(["workflow", "show", run.id.slice(0, 14)]);
      expect(shown.stdout).toMatch(/✔ implement +coder/);
      expect(shown.stdout).toContain("Build the payment client");
      const turn = run.steps.find(({ id }) => id === "implement")?.run as string;
      expect((await home.run(["run", "show", turn])).stdout).toContain(`step implement of workflow ${run.id}`);
      const events = await eventsOf(daemon, run.id);
      expect(events.at(0)).toBe("workflow.started");
      expect(events.at(-1)).toBe("workflow.completed");
      expect(events.filter((type) => type === "step.completed")).toHaveLength(4);
    },
    LONG,
  );

  const same = (text: string): string => text;
  /** Other names, and the steps the other way round. */
  const renamed = (text: string): string => {
    const names = { api_findings: "notes/v1", client: "code", research: "find-out", implement: "make", test: "try_it", ship: "send" };
    const other = Object.entries(names).reduce((all, [name, next]) => all.replaceAll(new RegExp(`\\b${name}\\b`, "g"), next), text);
    const [head = "", steps = "", tail = ""] = other.split(/^(?=steps:)|^(?=outputs:)/m);
    const each = steps.split(/^(?= {2}- )/m);
    return `${head}${each[0]}${each.slice(1).reverse().join("")}${tail}`;
  };

  test.each([
    ["as it is written", same, ["research", "implement", "test", "ship"], "client"],
    ["with other names, the other way round", renamed, ["find-out", "make", "try_it", "send"], "code"],
  ] as const)(
    "%s, on a model elsewhere: each step is told what it reads, and its answer is what it writes",
    async (_, change, order, output) => {
      const { server, home } = await scripted((request) => {
        const goal = goalOf(request);
        if (goal.startsWith("Research")) return '{"endpoint": "/v1/charges", "secret": "found-by-research"}';
        if (goal.startsWith("Build"))
          return `class Client { /* ${told(request).includes("found-by-research") ? "knows the endpoint" : "guesses"} */ }`;
        return "All tests pass.";
      });
      const file = join(home.path, "flow.yaml");
      writeFileSync(file, change(readFileSync(EXAMPLE, "utf8")).replace(/\bname: \S+/, "name: client-maker"));
      const daemon = await home.start();
      const run = await runApproved(home, daemon, file, order[3]);
      expect(run.status).toBe("completed");
      expect(run.outputs).toEqual({ [output]: "class Client { /* knows the endpoint */ }" });
      expect(server.requests.map((request) => goalOf(request).split(" ")[0])).toEqual(["Research", "Build", "Write", "Ship"]);
      const began = run.steps.toSorted((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0)).map(({ id }) => id);
      expect(began).toEqual(order);
      // The last one reads nothing: nothing of what the others have written is in what it is told.
      const last = told(server.requests[3] as SeenRequest);
      expect(last).not.toContain("found-by-research");
      expect(last).not.toContain("knows the endpoint");
    },
    LONG,
  );
});

test(
  "a step that reads what it did not declare is refused and sees why, and the run goes on",
  async () => {
    const { server, home } = await scripted((request) => {
      const goal = goalOf(request);
      if (goal.startsWith("Keep")) return "the hidden word is ARTICHOKE";
      const asked = request.body.messages.some(({ role }: { role: string }) => role === "tool");
      return asked ? "I could not read it." : { calls: [{ tool: "context_read", args: { key: "secret" } }] };
    });
    const file = join(home.path, "flow.yaml");
    writeFileSync(
      file,
      `name: nosy
steps:
  - { id: keep, goal: Keep a word, writes: [secret] }
  - { id: pry, needs: [keep], goal: Find the word, writes: [found] }
outputs: [found]
`,
    );
    const { code, stdout } = await home.run(["workflow", "run", file, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).outputs).toEqual({ found: "I could not read it." });
    const after = server.requests.at(-1)?.body.messages.find(({ role }: { role: string }) => role === "tool");
    expect(after.content).toMatch(/secret/);
    expect(after.content).toMatch(/declare|reads/);
    expect(JSON.stringify(server.requests.at(-1)?.body)).not.toContain("ARTICHOKE");
  },
  LONG,
);

test(
  "a run that was kept long enough goes with its task",
  async () => {
    const home = house(`${OFFLINE}retention: 1s\n`);
    const { stdout } = await home.run(["workflow", "run", writeSmall(home), "--json"]);
    const { id, status } = JSON.parse(stdout) as WorkflowRun;
    expect(status).toBe("completed");
    await sleep(1_100);
    const daemon = await home.start();
    await expect.poll(async () => (await runs(daemon)).runs, SOON).toEqual([]);
    expect((await home.run(["workflow", "show", id])).stderr).toContain("[request.not_found]");
  },
  LONG,
);

function writeSmall(home: Home): string {
  const file = join(home.path, "small.yaml");
  writeFileSync(file, "name: small\nsteps: [{ id: one, goal: Do it, writes: [a] }]\noutputs: [a]\n");
  return file;
}

describe("as commands", () => {
  test("whoever follows a run whose daemon is gone goes on with it on a daemon of its own", async () => {
    const { server, home } = await scripted(() => ({ hangAfter: 0 }));
    const file = join(home.path, "flow.yaml");
    writeFileSync(file, "name: small\nsteps: [{ id: one, goal: Do it, writes: [a] }]\noutputs: [a]\n");
    const daemon = await home.start();
    const running = home.run(["workflow", "run", file, "--json"]);
    await server.seen(1);
    server.play(() => "done");
    await daemon.kill("SIGKILL");
    const { code, stdout, stderr } = await running;
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ status: "completed", outputs: { a: "done" } });
    expect(stderr).toContain("the daemon is gone");
  }, 40_000);

  test(
    "without a daemon a private one runs it, and later commands find the run; a failure is exit 1 and says why",
    async () => {
      const { home } = await scripted((request) => (goalOf(request) === "Fail" ? { status: 400, error: "no such thing" } : "done"));
      mkdirSync(join(home.path, "workflows"));
      writeFileSync(
        join(home.path, "workflows", "small.yaml"),
        "name: small\nsteps: [{ id: one, goal: Do it, writes: [a] }]\noutputs: [a]\n",
      );
      const good = await home.run(["workflow", "run", "small"]);
      expect(good).toMatchObject({ code: 0, stdout: expect.stringContaining("done") });
      expect(good.stderr).toMatch(/✔ one/);
      expect(good.stderr).not.toContain("\x1b");
      const failing = "name: failing\nsteps:\n  - { id: one, goal: Fail }\n  - { id: two, needs: [one], goal: Do it }\n";
      writeFileSync(join(home.path, "failing.yaml"), failing);
      const bad = await home.run(["workflow", "run", join(home.path, "failing.yaml"), "--json"]);
      expect(bad.code).toBe(1);
      expect(JSON.parse(bad.stdout)).toMatchObject({ status: "failed", steps: [{ status: "failed" }, { status: "cancelled" }] });
      const list = await home.run(["workflow", "list"]);
      expect(list.stdout).toMatch(/failing +failed +2 of 2/);
      expect(list.stdout).toMatch(/small +completed +1 of 1/);
      expect((await home.run(["workflow", "list", "--files"])).stdout).toMatch(/small +1/);
    },
    LONG,
  );

  test(
    "what is wrong with a file is told with its places, and nothing runs",
    async () => {
      const home = house(OFFLINE);
      const file = join(home.path, "wrong.yaml");
      writeFileSync(
        file,
        "name: wrong\nsteps:\n  - { id: a, goal: x, needs: [b] }\n  - { id: b, goal: x, needs: [a], reads: [nothing] }\n",
      );
      const { code, stdout, stderr } = await home.run(["workflow", "run", file, "--json"]);
      expect(code).toBe(2);
      expect(stderr).toMatch(/wrong\.yaml:[34]:\d+: /);
      const { error } = JSON.parse(stdout);
      expect(error).toMatchObject({ code: "workflow.invalid", details: { problems: expect.any(Array) } });
      expect(error.details.problems[0]).toMatchObject({ severity: "error", line: expect.any(Number) });
      expect(JSON.parse((await home.run(["workflow", "list", "--json"])).stdout).runs).toEqual([]);
      expect(await home.run(["workflow", "run", "no-such-name"])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("[workflow.unknown]"),
      });
    },
    LONG,
  );

  test(
    "detached, paused, resumed, cancelled, rejected: each says how to go on",
    async () => {
      const home = house(OFFLINE);
      const daemon = await home.start();
      const file = join(home.path, "gated.yaml");
      writeFileSync(file, "name: gated\nsteps:\n  - { id: look, goal: Look }\n  - { id: go, needs: [look], review: human, goal: Go }\n");
      const start = async (): Promise<string> => (await home.run(["workflow", "run", file, "--detach"])).stdout.trim();
      const first = await start();
      await waitFor(daemon, first, "waiting");
      expect((await home.run(["workflow", "pause", first.slice(0, 16)])).stdout).toContain("paused");
      expect((await home.run(["workflow", "resume", first])).code).toBe(0);
      const rejected = await home.run(["workflow", "approve", first, "go", "--reject", "--note", "not today", "--json"]);
      expect(JSON.parse(rejected.stdout)).toMatchObject({ status: "failed" });
      expect((await home.run(["workflow", "show", first])).stdout).toContain("not today");
      expect(await home.run(["workflow", "approve", first, "go"])).toMatchObject({ code: 1 });

      const second = await start();
      await waitFor(daemon, second, "waiting");
      expect((await home.run(["workflow", "cancel", second])).stdout).toContain("cancelled");
      expect(states(await runOf(daemon, second))).toEqual({ look: "completed", go: "cancelled" });
      const watched = await home.run(["workflow", "show", second, "--watch"]);
      expect(watched.stdout).toMatch(/× go/);
    },
    LONG,
  );

  test(
    "a retracted entry names the steps to run again, and a rerun takes over the rest",
    async () => {
      const home = house(OFFLINE);
      const daemon = await home.start();
      const file = join(home.path, "chain.yaml");
      writeFileSync(
        file,
        `name: chain
steps:
  - { id: base, goal: Lay the base, writes: [base] }
  - { id: other, goal: Do something else, writes: [other] }
  - { id: top, needs: [base], reads: [base], goal: Build on it, writes: [top] }
outputs: [top]
`,
      );
      const { id } = JSON.parse((await home.run(["workflow", "run", file, "--json"])).stdout) as WorkflowRun;
      const { stdout } = await home.run(["pool", "retract", `run:${id}`, "base", "1", "--reason", "wrong"]);
      const command = /guildhall (workflow rerun \S+ --from .+)/.exec(stdout)?.[1]?.split(" ") ?? [];
      expect(command.slice(0, 4)).toEqual(["workflow", "rerun", id, "--from"]);
      expect(new Set(command.slice(4))).toEqual(new Set(["base", "top"]));
      const dry = JSON.parse((await home.run([...command, "--dry-run", "--json"])).stdout) as RerunPlan;
      expect(dry).toMatchObject({ id: null, reused: ["other"], effects: [], estimate: { calls: expect.any(Number) } });
      expect(new Set(dry.again)).toEqual(new Set(["base", "top"]));
      expect((await runs(daemon)).runs).toHaveLength(1);
      expect((await home.run([...command, "--dry-run"])).stdout).toContain("nothing was started");
      const again = JSON.parse((await home.run([...command, "--json"])).stdout) as WorkflowRun;
      expect(again).toMatchObject({ status: "completed", rerunOf: { id } });
      expect(again.steps.map(({ id: step, reused = false }) => [step, reused])).toEqual([
        ["base", false],
        ["other", true],
        ["top", false],
      ]);
    },
    LONG,
  );
});

describe("over HTTP", () => {
  const small = { name: "small", steps: [{ id: "one", goal: "Do it", writes: ["a"] }], outputs: ["a"] };

  async function withAgents(): Promise<{ home: Home; daemon: RunningDaemon; as: (agent: string) => Promise<Record<string, string>> }> {
    const home = house(`model: offline/demo
agents:
  main: { default: true }
  boss: { subagents: { agents: [helper] } }
  helper: {}
  clerk: { tools: messaging }
`);
    const daemon = await home.start();
    const as = async (agent: string): Promise<Record<string, string>> => {
      const { token } = await api<{ token: string }>(daemon, "/api/tokens", { scope: `agent:${agent}`, name: agent });
      return { authorization: `Bearer ${token}` };
    };
    return { home, daemon, as };
  }

  test(
    "what is wrong with a workflow answers 422 with every problem; names never leave the folder; nothing runs",
    async () => {
      const { home, daemon } = await withAgents();
      mkdirSync(join(home.path, "workflows"));
      writeFileSync(join(home.path, "outside.yaml"), "name: outside\nsteps: [{ id: one, goal: x }]\n");
      const post = (body: unknown) => daemon.fetch("/api/workflows/runs", { method: "POST", body: JSON.stringify(body) });
      const wrong = await post({ workflow: { name: "x", steps: [{ id: "a", goal: "x", agent: "nobody", needs: ["b"] }] } });
      expect(wrong.status).toBe(422);
      const { error } = (await wrong.json()) as { error: { code: string; details: { problems: { path: unknown[] }[] } } };
      expect(error.code).toBe("workflow.invalid");
      expect(error.details.problems.map(({ path }) => path.join("."))).toEqual(expect.arrayContaining(["steps.0.agent"]));
      for (const workflow of ["../outside", "..", "/etc/passwd", "outside", "a/../../outside", "..\\outside", ""])
        expect([workflow, (await post({ workflow })).status]).toEqual([workflow, workflow === "" ? 422 : 404]);
      const needy = await post({ workflow: { name: "needy", steps: [{ id: "one", goal: "Do {{input.what}}" }] }, input: { that: 1 } });
      expect([needy.status, (await needy.json()) as unknown]).toMatchObject([422, { error: { message: expect.stringContaining("what") } }]);
      expect((await runs(daemon)).runs).toEqual([]);
    },
    LONG,
  );

  test(
    "asked for twice with one key, it is one run",
    async () => {
      const { daemon } = await withAgents();
      const body = { workflow: small, input: {}, idempotency_key: "k" };
      const [first, second] = await Promise.all(
        [1, 2].map(() => api<{ id?: string; error?: { code: string } }>(daemon, "/api/workflows/runs", body)),
      );
      const ids = new Set([first?.id, second?.id].filter((id) => id !== undefined));
      expect(ids.size).toBe(1);
      const [id] = ids as Set<string>;
      expect((await api<{ id: string }>(daemon, "/api/workflows/runs", body)).id).toBe(id);
      expect((await runs(daemon)).runs).toHaveLength(1);
    },
    LONG,
  );

  test(
    "an agent starts one within its rights and sees its own; without the right to delegate it starts none",
    async () => {
      const { home, daemon, as } = await withAgents();
      mkdirSync(join(home.path, "workflows"));
      writeFileSync(join(home.path, "workflows", "small.json"), JSON.stringify(small));
      const [boss, helper, clerk] = [await as("boss"), await as("helper"), await as("clerk")];
      const post = async (workflow: unknown, headers: Record<string, string>) =>
        (await daemon.fetch("/api/workflows/runs", { method: "POST", body: JSON.stringify({ workflow }), headers })).status;
      expect(await post(small, clerk)).toBe(403);
      expect(await post("small", boss)).toBe(403);
      expect(await post({ ...small, steps: [{ ...small.steps[0], agent: "main" }] }, boss)).toBe(403);
      const { id } = await api<{ id: string }>(
        daemon,
        "/api/workflows/runs",
        { workflow: { ...small, steps: [{ ...small.steps[0], agent: "helper" }] } },
        boss,
      );
      const done = await waitFor(daemon, id, "completed");
      expect(done).toMatchObject({ from: "boss", steps: [{ agent: "helper" }] });
      const seenBy = async (headers: Record<string, string>) => (await daemon.fetch(`/api/workflows/runs/${id}`, { headers })).status;
      expect([await seenBy(boss), await seenBy(helper), await seenBy(clerk)]).toEqual([200, 404, 404]);
      expect((await api<WorkflowRunList>(daemon, "/api/workflows/runs", undefined, boss)).runs).toHaveLength(1);
      expect((await api<WorkflowRunList>(daemon, "/api/workflows/runs", undefined, helper)).runs).toEqual([]);
      for (const verb of ["pause", "resume", "approve", "rerun"])
        expect((await daemon.fetch(`/api/workflows/runs/${id}/${verb}`, { method: "POST", body: "{}", headers: boss })).status).toBe(403);
      expect((await daemon.fetch(`/api/workflows/runs/${id}/cancel`, { method: "POST", body: "{}", headers: helper })).status).toBe(404);
    },
    LONG,
  );

  test(
    "whoever watches is told of the run, of what changes, and of its end",
    async () => {
      const { daemon } = await withAgents();
      const two = {
        name: "two",
        steps: [
          { id: "a", goal: "x" },
          { id: "b", goal: "y", needs: ["a"], review: "human" },
        ],
      };
      const { id } = await api<{ id: string }>(daemon, "/api/workflows/runs", { workflow: two });
      const live = await daemon.fetch(`/api/workflows/runs/${id.slice(0, 12)}/live`);
      let stream = "";
      for await (const piece of (live.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
        const waited = stream.includes('"status":"review"');
        stream += piece;
        if (!waited && stream.includes('"status":"review"')) await api(daemon, `/api/workflows/runs/${id}/approve`, { step: "b" });
      }
      expect(stream).toMatch(/^event: run\n/m);
      expect(stream).toMatch(/event: change\n/);
      const last = JSON.parse(/event: done\ndata: (.+)\n/.exec(stream)?.[1] ?? "{}") as WorkflowRun;
      expect(last).toMatchObject({ id, status: "completed" });
      expect(states(last)).toEqual({ a: "completed", b: "completed" });
    },
    LONG,
  );
});
