import { setTimeout as sleep } from "node:timers/promises";
import { versionOf } from "../peers.ts";
import { loadPeer } from "./load.ts";
import { type Description, type Probe, type Surroundings, type System, THINK_MS } from "./system.ts";

export const description: Description = {
  name: "LangGraph.js",
  version: () => `${versionOf("@langchain/langgraph")}, checkpoint-postgres ${versionOf("@langchain/langgraph-checkpoint-postgres")}`,
  ways: {
    "Store, one value": "PostgresStore: get, add, put. Its interface has no version and no condition to put with.",
    "thread, reducer":
      'PostgresSaver, a list with a reducer, each writer invokes the graph on one thread, durability "sync" (runs of one thread are queued by its server product, not by the library).',
    "one run, parallel nodes": "PostgresSaver, one invoke with four nodes side by side, each adding to a list with a reducer.",
    "Store, one key per note":
      "PostgresStore: every note under a key of its own, read back with search. No shared value, so nothing to lose.",
  },
  isolation: "PostgresStore: namespaces are lists of labels, search and listNamespaces take a prefix of such a list.",
  resumes: {
    "interrupt and Command":
      'PostgresSaver: interrupt() in one node, the effect in the next; invoke(new Command({resume})), durability "sync". Its documentation asks for effects that may be repeated.',
  },
  takeOver:
    "PostgresSaver and PostgresStore: invoke(null) on the thread, its way to go on after a crash. No leases: nothing to refuse with.",
};

interface Graph {
  invoke(input: unknown, config: unknown): Promise<Record<string, unknown>>;
  getState(config: unknown): Promise<{ values: Record<string, unknown> }>;
}

interface Builder {
  addNode(name: string, node: (state: never, runtime: never) => unknown): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: unknown): Graph;
}

interface LangGraph {
  readonly StateGraph: new (state: unknown) => Builder;
  readonly Annotation: { (options?: unknown): unknown; Root(fields: Readonly<Record<string, unknown>>): unknown };
  readonly Command: new (options: unknown) => unknown;
  readonly START: string;
  readonly END: string;
  interrupt(value: unknown): unknown;
}

interface Item {
  readonly key: string;
  readonly namespace: readonly string[];
  readonly value: Record<string, unknown>;
}

interface Store {
  setup(): Promise<void>;
  stop(): Promise<void>;
  get(namespace: readonly string[], key: string): Promise<Item | null>;
  put(namespace: readonly string[], key: string, value: unknown): Promise<void>;
  search(prefix: readonly string[], options?: unknown): Promise<Item[]>;
  listNamespaces(options: unknown): Promise<string[][]>;
}

interface Saver {
  setup(): Promise<void>;
  end(): Promise<void>;
}

const SHARED = ["shared"];
const BRANCHES = ["north", "east", "south", "west"];
const on = (thread: string) => ({ configurable: { thread_id: thread }, durability: "sync" });

export async function open({ url, effect }: Surroundings): Promise<System> {
  const { StateGraph, Annotation, Command, START, END, interrupt } = await loadPeer<LangGraph>("@langchain/langgraph");
  const { PostgresSaver } = await loadPeer<{ PostgresSaver: { fromConnString(url: string): Saver } }>(
    "@langchain/langgraph-checkpoint-postgres",
  );
  const { PostgresStore } = await loadPeer<{ PostgresStore: { fromConnString(url: string): Store } }>(
    "@langchain/langgraph-checkpoint-postgres/store",
  );
  const checkpointer = PostgresSaver.fromConnString(url);
  const store = PostgresStore.fromConnString(url);
  await checkpointer.setup();
  await store.setup();

  const list = () => Annotation({ reducer: (left: string[], right: string[]) => left.concat(right), default: () => [] });
  const notes = Annotation.Root({ notes: list() });
  const adding = new StateGraph(notes)
    .addNode("add", () => ({}))
    .addEdge(START, "add")
    .addEdge("add", END)
    .compile({ checkpointer });
  const branching = (note: string): Graph => {
    const builder = new StateGraph(notes);
    for (const branch of BRANCHES)
      builder
        .addNode(branch, async () => {
          await sleep(THINK_MS);
          return { notes: [`${note}-${branch}`] };
        })
        .addEdge(START, branch)
        .addEdge(branch, END);
    return builder.compile({ checkpointer });
  };
  const approving = (by: string): Graph =>
    new StateGraph(Annotation.Root({ run: Annotation(), approved: Annotation() }))
      .addNode("approve", () => ({ approved: interrupt("may it be paid?") }))
      .addNode("pay", async (state: { run: string }) => {
        await effect(state.run, by);
        return {};
      })
      .addEdge(START, "approve")
      .addEdge("approve", "pay")
      .addEdge("pay", END)
      .compile({ checkpointer });
  const working = (by: string, pause: () => Promise<void>): Graph =>
    new StateGraph(Annotation.Root({ run: Annotation(), by: Annotation() }))
      .addNode("work", async ({ run }: { run: string }, runtime: { store: Store }) => {
        await pause();
        await runtime.store.put(["results"], run, { by });
        return { by };
      })
      .addEdge(START, "work")
      .addEdge("work", END)
      .compile({ checkpointer, store });

  const distinct = async (thread: string): Promise<number> => new Set((await adding.getState(on(thread))).values.notes as string[]).size;
  const ways: Readonly<Record<string, { add(writer: number, index: number): Promise<unknown>; count(): Promise<number> }>> = {
    "Store, one value": {
      add: async () => {
        const before = await store.get(SHARED, "counter");
        await store.put(SHARED, "counter", { count: ((before?.value.count as number | undefined) ?? 0) + 1 });
      },
      count: async () => (await store.get(SHARED, "counter"))?.value.count as number,
    },
    "thread, reducer": {
      add: (writer, index) => adding.invoke({ notes: [`${writer}-${index}`] }, on("shared")),
      count: () => distinct("shared"),
    },
    "one run, parallel nodes": {
      add: async (writer, index) => writer === 0 && branching(String(index)).invoke({}, on("branches")),
      count: () => distinct("branches"),
    },
    "Store, one key per note": {
      add: (writer, index) => store.put(["notes"], `${writer}-${index}`, { note: index }),
      count: async () => (await store.search(["notes"], { limit: 1_000 })).length,
    },
  };

  const probeIsolation = async (): Promise<Probe[]> => {
    for (const user of ["1", "12"]) await store.put(["users", user], "note", { of: user });
    await store.put(["a:b"], "note", { of: "a:b" });
    const others = (items: readonly Item[]): string[] =>
      items.filter((item) => item.value.of !== "1").map((item) => `note of ${item.value.of}`);
    const foreign = await store.get(["a", "b"], "note");
    return [
      { asked: 'search(["users","1"])', leaked: others(await store.search(["users", "1"])) },
      {
        asked: 'listNamespaces({prefix: ["users","1"]})',
        leaked: (await store.listNamespaces({ prefix: ["users", "1"] })).filter((path) => path[1] !== "1").map((path) => path.join("/")),
      },
      { asked: 'get(["a","b"]) after put(["a:b"])', leaked: foreign ? [`note of ${foreign.value.of}`] : [] },
    ];
  };

  return {
    add: async (way, writer, index) => void (await ways[way]!.add(writer, index)),
    count: (way) => ways[way]!.count(),
    probeIsolation,
    resumes: {
      "interrupt and Command": {
        suspend: async (run) => void (await approving("nobody").invoke({ run }, on(run))),
        resume: async (run, by) => {
          await approving(by).invoke(new Command({ resume: true }), on(run));
          return "completed";
        },
      },
    },
    work: async (run, by, pause) => {
      await working(by, pause).invoke({ run }, on(run));
      return "accepted, without an error";
    },
    takeOver: async (run, by) => {
      await working(by, async () => {}).invoke(null, on(run));
      return "finished";
    },
    results: async (run) => ({
      "Store item": String((await store.get(["results"], run))?.value.by),
      "thread's state": String((await working("", async () => {}).getState(on(run))).values.by),
    }),
    close: async () => {
      await store.stop();
      await checkpointer.end();
    },
  };
}
