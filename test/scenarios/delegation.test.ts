import { describe, type TestContext, test } from "vitest";
import type { Task, TaskList } from "../../src/contract/tasks.ts";
import { type ModelServer, modelServer, type ScriptedReply, type SeenRequest } from "../model-server.ts";
import { DAEMON_DATABASES, postgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

interface Played {
  readonly input: string;
  readonly answers: number;
  readonly results: readonly string[];
}

/** What the turn was asked, how often its model has answered, and what its calls came to. */
function playedOf({ body }: SeenRequest): Played {
  const messages = body.messages as { role: string; content: unknown }[];
  const at = messages.findLastIndex(({ role }) => role === "user");
  const after = messages.slice(at + 1);
  return {
    input: String(messages[at]?.content),
    answers: after.filter(({ role }) => role === "assistant").length,
    results: after.filter(({ role }) => role === "tool").map(({ content }) => String(content)),
  };
}

const isLead = ({ input }: Played): boolean => input.includes("plan a trip");

/** The lead asks a scout and two children side by side, then says what came of them. */
function trip(request: SeenRequest): ScriptedReply | string {
  const played = playedOf(request);
  if (isLead(played))
    return played.answers === 0
      ? {
          calls: [
            { tool: "agent_delegate", args: { agent: "scout", goal: "Find a lake" }, id: "a" },
            { tool: "delegate_task", args: { tasks: [{ goal: "Count the tents" }, { goal: "Pack the food" }] }, id: "b" },
          ],
        }
      : `The trip: ${played.results.map((text) => JSON.stringify(JSON.parse(text))).join(" ")}`;
  if (played.input.includes("Find a lake")) return `Lake Ohrid.\n${played.input.trimEnd().split("\n").at(-1)}`;
  return played.input.includes("tents") ? "Three tents." : "Bread and cheese.";
}

async function houseOn(kind: string, { onTestFinished }: TestContext): Promise<{ home: Home; server: ModelServer }> {
  const server = await modelServer(trip);
  const place = kind === "PostgreSQL" ? postgresPlace() : undefined;
  const config = `
model: test/any
providers: { test: { type: openai-compatible, base_url: ${server.url}, api_key: none } }
agents:
  lead: { default: true, subagents: { agents: [scout] } }
  scout: {}
${place ? `store: ${place.location}` : ""}
`;
  const home = new Home(config);
  onTestFinished(async () => {
    await home.remove();
    await server.close();
    await place?.remove();
  });
  return { home, server };
}

async function tasksOf(daemon: RunningDaemon): Promise<Task[]> {
  return ((await (await daemon.fetch("/api/tasks")).json()) as TaskList).tasks;
}

/** Real processes, a real database, a model over HTTP. */
describe.each(DAEMON_DATABASES)("delegation through a daemon on %s", (kind) => {
  test("a turn asks an agent and two children side by side, and answers with what came of them", async (context) => {
    const { expect } = context;
    const { home, server } = await houseOn(kind, context);
    const daemon = await home.start();
    const { runId } = await daemon.send({ id: "1", text: "plan a trip" });
    const run = await daemon.finished(runId);
    const tasks = (await tasksOf(daemon)).reverse();
    expect(tasks.map(({ kind: sort, agent, from, status, result, depth }) => [sort, agent, from, status, result, depth])).toEqual([
      ["delegate", "scout", "lead", "completed", "Lake Ohrid.", 1],
      ["child", "lead", "lead", "completed", "Three tents.", 1],
      ["child", "lead", "lead", "completed", "Bread and cheese.", 1],
    ]);
    expect(run.reply?.text).toContain(`"agent":"scout","status":"completed","result":"Lake Ohrid."`);
    expect(run.reply?.text).toContain("Bread and cheese.");
    // The lead twice, the others once each.
    expect(server.requests).toHaveLength(5);
  });

  // On PostgreSQL the next node waits until the lease of the dead one has ended: once is enough for a test.
  const points = ["turn.parked", "task.opened", "turn.answered,turn.answered", "turn.committed,turn.committed"];
  test.for(kind === "SQLite" ? points : points.slice(0, 1))(
    "a daemon that is killed at %s goes on where it was: nobody is asked twice for what was answered",
    { timeout: 90_000 },
    async (point, context) => {
      const { expect } = context;
      const { home } = await houseOn(kind, context);
      const crashing = await home.startCrashing(point);
      const { runId } = await crashing.send({ id: "1", text: "plan a trip" });
      await crashing.ended;
      const daemon = await home.start();
      const run = await daemon.finished(runId);
      expect(run.status).toBe("completed");
      const tasks = await tasksOf(daemon);
      expect(tasks.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
      const events = await daemon.eventsUntil(runId, "turn.completed");
      expect(events.filter(({ type }) => type === "turn.completed")).toHaveLength(1);
      expect(events.filter(({ type, data }) => type === "tool.called" && (data as { tasks?: unknown }).tasks)).toHaveLength(2);
    },
  );

  test("a stop of the turn that waits reaches the model calls below it at once", async (context) => {
    const { expect } = context;
    const { home, server } = await houseOn(kind, context);
    server.play((request) => (isLead(playedOf(request)) ? trip(request) : { text: "never", hangAfter: 0 }));
    const daemon = await home.start();
    const { runId } = await daemon.send({ id: "1", text: "plan a trip" });
    await server.seen(4);
    await daemon.fetch(`/api/runs/${runId}/stop`, { method: "POST", body: "{}" });
    expect((await tasksOf(daemon)).map(({ status }) => status)).toEqual(["cancelled", "cancelled", "cancelled"]);
    // Whoever asked has left: the requests are broken off, not waited for.
    while (server.requests.filter(({ abandoned }) => abandoned).length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
    expect((await daemon.run(runId)).status).toBe("failed");
  });
});
