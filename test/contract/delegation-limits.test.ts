import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openTaskIn, type TaskToOpen } from "../../src/acts/tasks/open-task.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { DelegatingHouse, delegate, delegateTo } from "./delegating-house.ts";
import { call } from "./turning-house.ts";

const agents = (more: object = {}, main: object = {}) => ({
  agents: {
    main: { model: "test/model", default: true, subagents: { agents: ["ben", "ada", "gone"], ...main } },
    ben: { model: "test/model", subagents: { agents: ["main", "ada"] } },
    ada: { model: "test/model", subagents: { agents: ["ben"], max_depth: 5 } },
    gone: { model: "test/model", state: "archived" },
    ...more,
  },
});

describe.each(PLACES)("limits of delegation, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: DelegatingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new DelegatingHouse(store, agents());
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const refusals = async () => (await house.told("task.refused")).map(({ data }) => data.code);
  const open = (task: Partial<TaskToOpen>) =>
    store.transact(
      "open",
      (tx) => openTaskIn(house.taskParts, tx, { kind: "delegate", agent: "ben", from: "main", parent: null, goal: "x", ...task }),
      "locked",
    );
  /** Everybody delegates the rest of the way that the goal names, and answers what came of it. */
  const passOn = (): void => {
    house.does = ({ input, answers, results }) => {
      const way = /(?:^|\n)via ([a-z ]*)/.exec(input)?.[1]?.trim().split(" ").filter(Boolean) ?? [];
      const [next, ...rest] = way;
      if (next === undefined) return "the end";
      if (answers > 0) return results.join(" ");
      return next === "child" ? delegate(`via ${rest.join(" ")}`) : delegateTo(next, `via ${rest.join(" ")}`);
    };
  };
  const sent = async (text: string): Promise<string> => {
    const { runId } = await house.send(text);
    await house.takeAll();
    return (await readRun(store.read, runId))?.reply?.text ?? "";
  };

  test("a child is one deeper than whoever opens it, and no deeper than the smallest max_depth above it", async () => {
    passOn();
    expect(await sent("via child child")).toContain("the end");
    expect((await house.tasks()).map(({ depth, maxDepth }) => [depth, maxDepth])).toEqual([
      [1, 2],
      [2, 2],
    ]);
    expect(await sent("via child child child")).toContain("task.too_deep");
    expect(await refusals()).toEqual(["task.too_deep"]);
    // Of ada 5 are allowed, and of main 2: the smaller one holds.
    expect(await sent("via ada child child")).toContain("task.too_deep");
  });

  test("a call may lower the depth for whomever it asks, and not raise it", async () => {
    house.does = ({ input, answers, results }) =>
      input === "low" || input === "high"
        ? answers === 0
          ? delegateTo("ada", "further", { max_depth: input === "low" ? 1 : 9 })
          : results.join(" ")
        : answers > 0
          ? results.join(" ")
          : input.includes("further")
            ? delegate("further")
            : "the end";
    expect(await sent("low")).toContain("task.too_deep");
    house.reconfigure(agents({}, { max_depth: 1 }));
    expect(await sent("high")).toContain("task.too_deep");
    house.reconfigure(agents({}, { max_depth: 0 }));
    expect(await sent("high")).toContain("task.too_deep");
  });

  test("one more than max_children is refused, and so is a batch of which one would be too many, all of it", async () => {
    house.reconfigure(agents({}, { max_children: 2 }));
    house.does = ({ input, answers, results }) =>
      input !== "go"
        ? "done"
        : answers === 0
          ? { calls: ["1", "2", "3"].map((id) => call("delegate_task", { goal: id }, id)) }
          : answers === 1
            ? { calls: [call("delegate_task", { tasks: [{ goal: "4" }, { goal: "5" }, { goal: "6" }] })] }
            : results.join(" ");
    const { runId } = await house.send("go");
    await house.take();
    expect((await house.tasks()).map(({ goal }) => goal)).toEqual(["1", "2"]);
    await house.takeAll();
    expect((await house.tasks()).map(({ goal }) => goal)).toEqual(["1", "2"]);
    expect(await refusals()).toEqual(["task.too_many", "task.too_many"]);
    expect((await readRun(store.read, runId))?.reply?.text).toContain("task.too_many");
    expect((await house.told("task.refused"))[0]?.data.because).toBe("2 of at most 2 tasks of this turn are open; one more is too many");
  });

  test("whoever waits for a task already cannot be asked below it; a child is no cycle", async () => {
    passOn();
    expect(await sent("via ben main")).toContain("main → ben → main");
    expect(await sent("via child ben main")).toContain("main → ben → main");
    house.reconfigure(
      agents(
        { ben: { model: "test/model", subagents: { max_depth: 9, agents: ["main", "ada"] } } },
        { max_depth: 9, agents: ["ben", "main"] },
      ),
    );
    expect(await sent("via child ben ada ben")).toContain("main → ben → ada → ben");
    expect(await sent("via main")).toContain("task.cycle");
    expect(await sent("via child child child")).toContain("the end");
  });

  test("nobody is asked who may not be, is archived, or is not there; whoever pauses is asked later", async () => {
    passOn();
    house.reconfigure(agents({}, { agents: ["gone", "ada", "ben"] }));
    expect(await sent("via gone")).toContain("agent gone is archived");
    expect(await sent("via ben gone")).toContain("agents.ben.subagents.agents does not name gone");
    expect(await open({ agent: "gone" })).toMatchObject({ refused: { code: "agent.archived" } });
    expect(await open({ agent: "nobody" })).toMatchObject({ refused: { code: "agent.unknown" } });
    house.reconfigure(agents({ ben: { model: "test/model", state: "paused" } }));
    const { runId } = await house.send("via ben");
    await house.takeAll();
    expect((await readRun(store.read, runId))?.status).toBe("waiting");
    expect(await refusals()).toEqual(["agent.archived", "agent.unknown"]);
  });

  test("nothing is begun for a message whose budget is spent", async () => {
    house.reconfigure({
      ...agents(),
      agents: { ...agents().agents, main: { ...agents().agents.main, budget: { tokens_per_task: 100_000 } } },
    });
    house.does = ({ answers, results }) =>
      answers === 0
        ? { ...(delegate("more") as object), usage: { inputTokens: 90_000, outputTokens: 20_000 } }
        : { text: results.join(" "), usage: { inputTokens: 1, outputTokens: 1 } };
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(await house.tasks()).toEqual([]);
    expect(await refusals()).toEqual(["budget.exceeded"]);
    expect((await house.calls(runId))[0]?.result?.text).toContain("may spend 100000 tokens for one message, and 110000 tokens are spent");
  });

  test("a budget is that of the whole tree, also where a program began it", async () => {
    house.reconfigure({
      agents: {
        ...agents().agents,
        ben: { model: "test/model", budget: { tokens_per_task: 100_000 }, subagents: { agents: ["ada"] } },
      },
    });
    house.does = ({ input, answers }) =>
      input === "root"
        ? { ...(delegateTo("ada", "spend") as object), usage: { inputTokens: 1, outputTokens: 1 } }
        : answers === 0
          ? { calls: [call("task_search", { query: "x" })], usage: { inputTokens: 90_000, outputTokens: 15_000 } }
          : { text: "never", usage: { inputTokens: 1, outputTokens: 1 } };
    await open({ kind: "api", agent: "ben", from: "operator", goal: "root" });
    await house.takeAll();
    // Of ada nothing is limited: it is ben's budget that all of it is spent from.
    expect((await house.tasks()).map(({ agent, error }) => [agent, error?.code])).toEqual([
      ["ben", "budget.exceeded"],
      ["ada", "budget.exceeded"],
    ]);
  });

  test("a turn that has ended opens nothing any more", async () => {
    house.does = () => "done";
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(await open({ parent: { run: runId } })).toMatchObject({ refused: { code: "run.over" } });
    expect(await open({ parent: { run: "nothing" } })).toMatchObject({ refused: { code: "run.over" } });
  });

  test("the same key by the same one is the same task, also at the same time; another's is another, and another goal is refused", async () => {
    const both = await Promise.all([open({ idempotencyKey: "k" }), open({ idempotencyKey: "k" })]);
    const ids = both.map((opened) => ("id" in opened ? opened.id : ""));
    expect(ids[0]).toBe(ids[1]);
    expect(both.filter((opened) => "isNew" in opened && opened.isNew)).toHaveLength(1);
    expect(await house.tasks()).toHaveLength(1);
    expect(await store.queue.counts()).toEqual({ ready: 1 });
    expect(await open({ idempotencyKey: "k", from: "ada" })).toMatchObject({ isNew: true });
    expect(await open({ idempotencyKey: "k", goal: "y" })).toMatchObject({ refused: { code: "request.key_reused" } });
  });

  test("a task that two turns asked for by the same key is told to both", async () => {
    house.does = ({ input, answers, results }) =>
      input.startsWith("go") ? (answers === 0 ? delegateTo("ben", "look", { idempotency_key: "k" }) : results.join(" ")) : "seen";
    const one = await house.send("go 1", { chat: "1", peer: "1" });
    const two = await house.send("go 2", { chat: "2", peer: "2" });
    await house.takeAll();
    expect(await house.tasks()).toHaveLength(1);
    for (const { runId } of [one, two]) expect((await readRun(store.read, runId))?.reply?.text).toContain('"seen"');
    const three = await house.send("go 3");
    await house.takeAll();
    expect((await readRun(store.read, three.runId))?.reply?.text).toContain('"seen"');
    expect(await house.tasks()).toHaveLength(1);
  });
});
