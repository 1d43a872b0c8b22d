import { setTimeout as sleep } from "node:timers/promises";
import { versionOf } from "../peers.ts";
import { loadPeer } from "./load.ts";
import { type Description, type Probe, type Surroundings, type System, THINK_MS } from "./system.ts";

export const description: Description = {
  name: "Mastra",
  version: () => `${versionOf("@mastra/core")}, memory ${versionOf("@mastra/memory")}, pg ${versionOf("@mastra/pg")}`,
  ways: {
    "working memory, merged": "@mastra/memory on @mastra/pg, resource scope, schema: each update names only its own field and is merged.",
    "one run, own keys": "@mastra/pg: four steps side by side in one run, each sets a key of its own with setState.",
    "one run, shared list":
      "@mastra/pg: four steps side by side in one run, each takes the list from state, works 10 ms, sets it with its own note added.",
    "messages, one per note":
      "@mastra/memory on @mastra/pg: every note a message with an id of its own. No shared value, so nothing to lose.",
  },
  isolation: "@mastra/memory on @mastra/pg: everything belongs to a resource id, which is compared as a whole.",
  resumes: {
    "suspend and resume":
      "@mastra/pg: suspend() in one step, the effect in the next; run.resume(), which claims the suspension in the database first.",
  },
  takeOver:
    "@mastra/pg: run.restart(), its way to go on when a run lost its server. Its leases (LeaseProvider) need Redis, and their owner is no part of a write.",
};

interface Memory {
  getWorkingMemory(of: unknown): Promise<string | null>;
  updateWorkingMemory(update: unknown): Promise<void>;
  listTools(): Readonly<Record<string, { execute(input: unknown, context: unknown): Promise<unknown> }>>;
  createThread(thread: unknown): Promise<unknown>;
  listThreads(filter: unknown): Promise<{ threads: { id: string; resourceId: string }[] }>;
  saveMessages(messages: unknown): Promise<unknown>;
  recall(of: unknown): Promise<{ messages: unknown[] }>;
}

interface Run {
  start(input: unknown): Promise<Outcome>;
  resume(input: unknown): Promise<Outcome>;
  restart(): Promise<Outcome>;
}

interface Outcome {
  readonly status: string;
  readonly state?: Record<string, unknown>;
  readonly error?: Error;
}

interface Workflow {
  then(step: unknown): Workflow;
  parallel(steps: readonly unknown[]): Workflow;
  commit(): Workflow;
  createRun(options?: { runId: string }): Promise<Run>;
  getWorkflowRunById(id: string): Promise<{ result?: unknown; steps?: Record<string, { output?: unknown }>; status: string } | null>;
}

interface Step {
  readonly inputData: { readonly run: string };
  readonly resumeData?: unknown;
  readonly state: Record<string, unknown>;
  setState(state: unknown): Promise<void>;
  suspend(payload: unknown): Promise<never>;
}

interface Zod {
  object(fields: unknown): unknown;
  record(key: unknown, value: unknown): { optional(): unknown };
  string(): { optional(): unknown };
  array(item: unknown): unknown;
  any(): unknown;
}

const SHARED = { resourceId: "shared", threadId: "shared-thread" };
const BRANCHES = ["north", "east", "south", "west"];

export async function open({ url, effect }: Surroundings): Promise<System> {
  const { Mastra } = await loadPeer<{ Mastra: new (options: unknown) => { getWorkflow(name: string): Workflow } }>("@mastra/core");
  const { createStep, createWorkflow } = await loadPeer<{
    createStep(step: unknown): unknown;
    createWorkflow(workflow: unknown): Workflow;
  }>("@mastra/core/workflows");
  const { Memory } = await loadPeer<{ Memory: new (options: unknown) => Memory }>("@mastra/memory");
  const { PostgresStore } = await loadPeer<{ PostgresStore: new (options: unknown) => { init(): Promise<void>; close(): Promise<void> } }>(
    "@mastra/pg",
  );
  const { z } = await loadPeer<{ z: Zod }>("zod");

  const storage = new PostgresStore({ id: "bench", connectionString: url });
  await storage.init();
  const notes = z.object({ notes: z.record(z.string(), z.string()).optional() });
  const memory = new Memory({ storage, options: { workingMemory: { enabled: true, scope: "resource", schema: notes } } });
  await memory.createThread(SHARED);

  const update = memory.listTools().updateWorkingMemory!;

  const ofRun = z.object({ run: z.string() });
  const step = (id: string, execute: (step: Step) => Promise<unknown>, more: Readonly<Record<string, unknown>> = {}) =>
    createStep({ id, inputSchema: ofRun, outputSchema: z.any(), ...more, execute });
  const workflow = (id: string, more: Readonly<Record<string, unknown>> = {}) =>
    createWorkflow({ id, inputSchema: ofRun, outputSchema: z.any(), ...more });

  // As documented: the workflow's schema has all of the state, a step's schema the part it needs.
  const ownKey = (branch: string) => z.object({ [branch]: z.string().optional() });
  const ownKeys = workflow("ownKeys", {
    stateSchema: z.object(Object.fromEntries(BRANCHES.map((branch) => [branch, z.string().optional()]))),
  })
    .parallel(
      BRANCHES.map((branch) => {
        const execute = async ({ setState }: Step): Promise<void> => {
          await sleep(THINK_MS);
          await setState({ [branch]: "was here" });
        };
        return step(branch, execute, { stateSchema: ownKey(branch) });
      }),
    )
    .commit();
  const list = z.object({ notes: z.array(z.string()) });
  const sharedList = workflow("sharedList", { stateSchema: list })
    .parallel(
      BRANCHES.map((branch) => {
        const execute = async ({ state, setState }: Step): Promise<void> => {
          const { notes } = state as { notes: readonly string[] };
          await sleep(THINK_MS);
          await setState({ notes: [...notes, branch] });
        };
        return step(branch, execute, { stateSchema: list });
      }),
    )
    .commit();

  const approving = (by: string): Workflow => {
    const built = workflow("approving")
      .then(
        step("approve", ({ inputData, resumeData, suspend }) => (resumeData ? Promise.resolve(inputData) : suspend({})), {
          resumeSchema: z.object({}),
        }),
      )
      .then(
        step("pay", async ({ inputData }) => {
          await effect(inputData.run, by);
          return {};
        }),
      )
      .commit();
    return registered("approving", built);
  };
  const working = (by: string, pause: () => Promise<void>): Workflow => {
    const built = workflow("working")
      .then(
        step("work", async ({ inputData }) => {
          await pause();
          await update.execute({ memory: { notes: { [inputData.run]: by } } }, { agent: { resourceId: "results" }, memory });
          return { by };
        }),
      )
      .commit();
    return registered("working", built);
  };
  const registered = (name: string, built: Workflow): Workflow =>
    new Mastra({ storage, workflows: { [name]: built }, logger: false }).getWorkflow(name);

  const finalState = async (name: string, workflow: Workflow, initialState: unknown): Promise<Record<string, unknown>> => {
    const run = await registered(name, workflow).createRun();
    const { status, state, error } = await run.start({ inputData: { run: name }, initialState, outputOptions: { includeState: true } });
    if (status !== "success") throw error ?? new Error(status);
    return state ?? {};
  };
  const record = async (kept: readonly string[]): Promise<void> => {
    for (const branch of kept) await effect("branches", branch);
  };
  const message = (text: string) => ({
    ...SHARED,
    id: text,
    role: "user",
    type: "text",
    createdAt: new Date(),
    content: { format: 2, parts: [{ type: "text", text }] },
  });
  const ways: Readonly<Record<string, { add(writer: number, index: number): Promise<unknown>; count(): Promise<number | null> }>> = {
    "working memory, merged": {
      add: (writer, index) =>
        update.execute({ memory: { notes: { [`${writer}-${index}`]: "noted" } } }, { agent: { resourceId: SHARED.resourceId }, memory }),
      count: async () => Object.keys(JSON.parse((await memory.getWorkingMemory(SHARED)) ?? "{}").notes ?? {}).length,
    },
    "one run, own keys": {
      add: async (writer) => {
        if (writer > 0) return;
        const state = await finalState("ownKeys", ownKeys, {});
        await record(BRANCHES.filter((branch) => state[branch]));
      },
      count: async () => null,
    },
    "one run, shared list": {
      add: async (writer) => writer === 0 && record((await finalState("sharedList", sharedList, { notes: [] })).notes as string[]),
      count: async () => null,
    },
    "messages, one per note": {
      add: (writer, index) => memory.saveMessages({ messages: [message(`note ${writer}-${index}`)] }),
      count: async () => (await memory.recall({ ...SHARED, perPage: false })).messages.length,
    },
  };

  const probeIsolation = async (): Promise<Probe[]> => {
    for (const resourceId of ["users:1", "users:12", "users"]) {
      await memory.createThread({ resourceId, threadId: `thread of ${resourceId}`, title: "t" });
      await memory.updateWorkingMemory({
        resourceId,
        threadId: `thread of ${resourceId}`,
        workingMemory: JSON.stringify({ notes: { of: resourceId } }),
      });
    }
    const threads = async (resourceId: string): Promise<string[]> =>
      (await memory.listThreads({ filter: { resourceId }, perPage: false })).threads
        .filter((thread) => thread.resourceId !== resourceId)
        .map((thread) => thread.id);
    const remembered = JSON.parse((await memory.getWorkingMemory({ resourceId: "users:1" })) ?? "{}").notes?.of;
    return [
      { asked: "listThreads of users:1", leaked: await threads("users:1") },
      { asked: "listThreads of users", leaked: await threads("users") },
      { asked: "getWorkingMemory of users:1", leaked: remembered === "users:1" ? [] : [String(remembered)] },
    ];
  };

  return {
    add: async (way, writer, index) => void (await ways[way]!.add(writer, index)),
    count: (way) => ways[way]!.count(),
    probeIsolation,
    resumes: {
      "suspend and resume": {
        suspend: async (run) => {
          const outcome = await (await approving("nobody").createRun({ runId: run })).start({ inputData: { run } });
          if (outcome.status !== "suspended") throw outcome.error ?? new Error(outcome.status);
        },
        resume: async (run, by) => {
          try {
            return (await (await approving(by).createRun({ runId: run })).resume({ step: "approve", resumeData: {} })).status;
          } catch (error) {
            return `refused: ${(error as { id?: string }).id ?? (error as Error).message}`;
          }
        },
      },
    },
    work: async (run, by, pause) => {
      const outcome = await (await working(by, pause).createRun({ runId: run })).start({ inputData: { run } });
      return outcome.status === "success" ? "accepted, without an error" : `${outcome.status}: ${outcome.error?.message}`;
    },
    takeOver: async (run, by) => (await (await working(by, async () => {}).createRun({ runId: run })).restart()).status,
    results: async (run) => {
      const found = await working("", async () => {}).getWorkflowRunById(run);
      const remembered = JSON.parse((await memory.getWorkingMemory({ resourceId: "results" })) ?? "{}");
      return {
        "working memory": String(remembered.notes?.[run]),
        "run's result": String((found?.steps?.work?.output as { by?: string } | undefined)?.by),
      };
    },
    close: () => storage.close(),
  };
}
