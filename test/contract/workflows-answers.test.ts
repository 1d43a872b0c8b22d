import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { openTaskIn } from "../../src/acts/tasks/open-task.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import type { ModelRequest } from "../../src/kernel/model.ts";
import { readTask } from "../../src/records/tasks/task-rows.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { FlowingHouse, fromGateway, readsIn, step } from "./flowing-house.ts";
import { call } from "./turning-house.ts";

describe.each(PLACES)("what a step answers, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: FlowingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new FlowingHouse(store);
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const OBJECT = {
    keys: { out: { schema: { type: "object", required: ["n"] } } },
    steps: [step("a", { writes: ["out"] })],
    outputs: ["out"],
  };

  const ONE = { steps: [step("a", { writes: ["x"] })] };

  test("fills the keys it did not write itself; the closing line is no part of it", async () => {
    house.playStep = (_goal, _request, count) =>
      count === 1 ? { calls: [call("context_write", { key: "first", value: "mine" })] } : "the answer\n\n<TASK abc-1 COMPLETED>";
    const id = await house.start({ steps: [step("a", { writes: ["first", "second", "third"] })], outputs: ["first", "second", "third"] });
    await house.drain();
    expect((await house.run(id)).outputs).toEqual({ first: "mine", second: "the answer", third: "the answer" });
    expect((await readTask(store.read, (await house.step(id, "a")).task as string))?.result).toBe("the answer");
  });

  test("P5 what whoever started it had seen marks what its steps store", async () => {
    const [marked, clean] = [await house.start(ONE, { labels: ["external"] }), await house.start(ONE)];
    await house.drain();
    const labelOf = async (id: string) => (await house.pools.read(OPERATOR, `run:${id}`, "x"))?.label;
    expect(await labelOf(marked)).toBe("external");
    expect(await labelOf(clean)).toBe("trusted");
  });

  test("ASI02 what a step with a secret would share by its answer is put before a person", async () => {
    const look = defineTool({
      name: "todo",
      description: "Looks.",
      parameters: z.strictObject({}),
      effect: "pure",
      run: () => ({ output: "hunter2", labels: ["secret"] }),
    });
    house.tools = [...house.tools, look];
    house.playStep = (_goal, request, count) => {
      if (count === 1) return { calls: [call("todo")] };
      return fromGateway(request).length === 0 ? "it is hunter2" : { calls: [call("context_write", { key: "x", value: "a password" })] };
    };
    const id = await house.start({ ...ONE, outputs: ["x"] });
    await house.drain();
    expect(await house.valueIn(id, "x")).toBeUndefined();
    expect(await house.approvals.list({ state: "asked", limit: 10 })).toMatchObject([{ tool: "context_write" }]);
  });

  test("ASI02 a step that insists on sharing a secret fails", async () => {
    const id = await house.start({ ...ONE, outputs: ["x"] }, { labels: ["secret"] });
    await house.drain();
    expect(await house.run(id)).toMatchObject({ status: "failed", outputs: {} });
    expect(await house.step(id, "a")).toMatchObject({ error: { code: "task.bad_answer" } });
  });

  test("a JSON object with exactly the missing keys fills each with its own", async () => {
    house.playStep = () => 'Here:\n```json\n{"x": 1, "y": ["two"]}\n```';
    const id = await house.start({ steps: [step("a", { writes: ["x", "y"] })], outputs: ["x", "y"] });
    await house.drain();
    expect((await house.run(id)).outputs).toEqual({ x: 1, y: ["two"] });
  });

  test.each([
    ["alone", '{"n": 1}'],
    ["in a code fence", 'Sure!\n```json\n{"n": 1}\n```\nDone.'],
    ["among words", 'The result is {"n": 1}, as asked.'],
  ])("for a key with a schema it is parsed: JSON %s", async (_where, answer) => {
    house.playStep = () => answer;
    const id = await house.start(OBJECT);
    await house.drain();
    expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { out: { n: 1 } } });
    expect(house.goals).toHaveLength(1);
  });

  test("a misfit is corrected once, with what is wrong", async () => {
    house.playStep = (_goal, _request, count) => (count === 1 ? '{"m": 1}' : '{"n": 2}');
    const id = await house.start(OBJECT);
    await house.drain();
    expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { out: { n: 2 } } });
    const [told, ...more] = fromGateway(house.asked[1] as never);
    expect(more).toEqual([]);
    expect(told).toContain('Your answer is to be stored under "out", and does not fit');
    expect(told).toContain('Schema of out: {"required":["n"],"type":"object"}');
    expect(told).toContain('"n"');
    expect(house.asked[1]?.messages.some((message) => message.role === "assistant" && message.text === '{"m": 1}')).toBe(true);
  });

  describe("what it has added to a list before it failed", () => {
    const adds = (request: ModelRequest, value: unknown) =>
      request.messages.some((message) => message.role === "tool") ? null : { calls: [call("context_write", { key: "list", value })] };
    const definition = (retry: object) => ({
      keys: { list: { policy: "append" }, out: { schema: { type: "object" } } },
      steps: [step("b", { writes: ["list"] }), step("a", { writes: ["list", "out"], ...retry })],
      outputs: ["list"],
    });
    const sorted = async (id: string): Promise<unknown[]> => ((await house.valueIn(id, "list")) as unknown[]).toSorted();

    test("is taken back when it is tried again, and nothing that others have added", async () => {
      house.playStep = (goal, request, count) => {
        if (goal === "do b") return "of b";
        // As b has it: two that are the same are two.
        return adds(request, ["of a", "of b"]) ?? (count <= 3 ? "no json" : "{}");
      };
      const id = await house.start(definition({ retry: { attempts: 2, backoff: "none" } }));
      await house.drain();
      expect(await house.step(id, "a")).toMatchObject({ status: "completed", attempts: 2 });
      expect(await sorted(id)).toEqual(["of a", "of b", "of b"]);
      const { entries } = await house.pools.history(OPERATOR, `run:${id}`, "list");
      expect(entries.filter(({ author }) => author.agent === "guildhall")).toMatchObject([{ note: "a is done again" }]);
    });

    test("stays where it is not, and goes when a person resumes the run", async () => {
      house.playStep = (goal, request, count) => (goal === "do b" ? "of b" : (adds(request, "of a") ?? (count <= 3 ? "no json" : "{}")));
      const id = await house.start(definition({}));
      await house.drain();
      expect((await house.run(id)).status).toBe("failed");
      expect(await sorted(id)).toEqual(["of a", "of b"]);
      await house.resume(id);
      expect(await sorted(id)).toEqual(["of b"]);
      await house.drain();
      expect(await house.run(id)).toMatchObject({ status: "completed" });
      expect(await sorted(id)).toEqual(["of a", "of b"]);
    });

    test("is taken back whatever the key asks of a list, and however long that is", async () => {
      const long = "x".repeat(1_100_000);
      house.playStep = async (goal, request, count) => {
        if (goal === "do b") await house.put(many, "list", [long]);
        if (goal === "do b") return '["of b"]';
        return adds(request, goal) ?? (count <= 3 ? "no json" : "{}");
      };
      const retry = { retry: { attempts: 2, backoff: "none" } };
      const keys = {
        list: { policy: "append", overflow: "spill", schema: { type: "array", minItems: 1 } },
        out: { schema: { type: "object" } },
      };
      const many = await house.start({ ...definition(retry), keys });
      const alone = await house.start({ keys, steps: [step("only", { writes: ["list", "out"], ...retry })] });
      await house.drain();
      const all = async (id: string) => (await house.pools.read(OPERATOR, `run:${id}`, "list", { full: true }))?.value;
      expect(await all(many)).toEqual([long, "of b", "do a"]);
      expect(await all(alone)).toEqual(["do only"]);
    });

    test("is no longer there, where the list ended meanwhile: what others have put there is theirs", async () => {
      house.playStep = async (goal, request, count) => {
        if (goal === "do b") return "of b";
        if (adds(request, "the same")) return adds(request, "the same") as object;
        if (count > 3) return "{}";
        if (count === 2) {
          await house.pools.write(OPERATOR, `run:${id}`, [{ key: "list", remove: true }]);
          await house.put(id, "list", "the same");
        }
        return "no json";
      };
      const id = await house.start(definition({ retry: { attempts: 2, backoff: "none" } }));
      await house.drain();
      expect(await sorted(id)).toEqual(["the same", "the same"]);
    });

    test("P5 is taken back without making what is left look trusted", async () => {
      const seen = defineTool({
        name: "todo",
        description: "Looks.",
        parameters: z.strictObject({}),
        effect: "pure",
        run: () => ({ output: "words from outside", labels: ["external"] }),
      });
      house.tools = [...house.tools, seen];
      house.playStep = (goal, request, count) => {
        if (goal === "do a") return adds(request, "of a") ?? (count <= 3 ? "no json" : "{}");
        return request.messages.some((message) => message.role === "tool") ? "of b" : { calls: [call("todo")] };
      };
      const id = await house.start(definition({ retry: { attempts: 2, backoff: "fixed", delay: 1_000 } }));
      await house.drain();
      expect((await house.pools.read(OPERATOR, `run:${id}`, "list"))?.label).toBe("external");
      await place.elapse(1_001);
      await store.queue.reap();
      await house.drain();
      expect(await sorted(id)).toEqual(["of a", "of b"]);
      expect((await house.pools.read(OPERATOR, `run:${id}`, "list"))?.label).toBe("external");
    });
  });

  test("V7 what the pool cannot hold is refused whole, and the step fails", async () => {
    const small = { readers: ["*"], writers: ["*"], quota: { max_bytes: 100 } };
    await house.locked((tx) => house.pools.createIn(tx, "operator", "small", small));
    house.playStep = (goal) => (goal === "do a" ? "x".repeat(80) : "y".repeat(80));
    const id = await house.start({ pool: "small", steps: [step("a", { writes: ["x"] }), step("b", { needs: ["a"], writes: ["y"] })] });
    await house.drain();
    expect(await house.step(id, "b")).toMatchObject({ status: "failed", error: { code: "pool.full" } });
    expect(await house.pools.read(OPERATOR, "small", "y")).toBeUndefined();
    const [usage] = await store.read.all<{ bytes: number }>`select bytes from pool_usage where pool = 'small' and agent = ''`;
    expect(usage?.bytes).toBe(82);
  });

  test("what a `foreach` goes over is asked for as a list, and corrected once, where nothing is said of it", async () => {
    house.playStep = (goal, request) => {
      if (goal !== "do find") return `${goal}, done`;
      return fromGateway(request).length === 0 ? "There are two: a and b." : '```json\n["a", "b"]\n```';
    };
    const each = { ...step("each", { needs: ["find"], foreach: "found", writes: ["seen"] }), goal: "look at {{item}}" };
    const definition = { keys: { seen: { policy: "append" } }, steps: [step("find", { writes: ["found"] }), each], outputs: ["seen"] };
    const id = await house.start(definition);
    await house.drain();
    expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { seen: ["look at a, done", "look at b, done"] } });
    expect((await house.rerun(id, ["each"])).again).toEqual(["each"]);
  });

  test("a second misfit fails the step", async () => {
    house.playStep = () => "just words";
    const id = await house.start(OBJECT);
    await house.drain();
    expect(house.goals).toHaveLength(2);
    expect(await house.step(id, "a")).toMatchObject({ status: "failed", error: { code: "task.bad_answer" } });
    expect(await house.valueIn(id, "out")).toBeUndefined();
  });

  test("that it was corrected survives a crash: nobody is corrected twice", async () => {
    house.playStep = () => "just words";
    const id = await house.start(OBJECT);
    await house.takeAndDieAt("turn.steered");
    expect(house.goals).toHaveLength(1);
    await house.drain();
    expect(house.goals).toHaveLength(2);
    expect(fromGateway(house.asked[1] as never)).toHaveLength(1);
    expect(await house.step(id, "a")).toMatchObject({ status: "failed", error: { code: "task.bad_answer" } });
  });

  test("an answer for `output_schema` of a delegated task is parsed, corrected once, then fails", async () => {
    house.play = (_request, count) => (count === 2 ? '{"ok": true}' : "words");
    const schema = { type: "object", required: ["ok"] };
    const open = (goal: string) =>
      house.locked((tx) =>
        openTaskIn(house.taskParts, tx, {
          kind: "api",
          agent: "ada",
          from: "operator",
          parent: null,
          goal,
          spec: { outputSchema: schema },
        }),
      ) as Promise<{ id: string; isNew: boolean }>;
    const good = await open("one");
    await house.drain();
    expect(await readTask(store.read, good.id)).toMatchObject({ status: "completed", result: { ok: true } });
    expect(house.asked).toHaveLength(2);
    const bad = await open("two");
    await house.drain();
    expect(await readTask(store.read, bad.id)).toMatchObject({ status: "failed", error: { code: "task.bad_answer" }, result: null });
  });

  test("a key that another step wrote is replaced only by who has read it; what an earlier attempt wrote is its own", async () => {
    house.playStep = (goal, _request, count) => (goal === "do again" && count < 3 ? "no json" : '{"by": "it"}');
    const keys = { k: { schema: { type: "object" } } };
    const blind = await house.start({ keys, steps: [step("a", { writes: ["k"] }), step("b", { needs: ["a"], writes: ["k"] })] });
    const seeing = await house.start({
      keys,
      steps: [step("a", { writes: ["k"] }), step("b", { needs: ["a"], reads: ["k"], writes: ["k"] })],
    });
    const again = await house.start({
      keys: { ...keys, other: {} },
      steps: [step("again", { writes: ["k"], retry: { attempts: 2, backoff: "none" } })],
    });
    await house.drain();
    expect(await house.step(blind, "b")).toMatchObject({ status: "failed", error: { code: "pool.conflict" } });
    expect(await house.run(seeing)).toMatchObject({ status: "completed" });
    expect(await house.run(again)).toMatchObject({ status: "completed" });
  });

  describe("when what it had read was changed meanwhile", () => {
    /** `b` reads what `a` wrote; while it works for the first time, an operator writes another version. */
    const definition = (rule: string, more: object = {}) => ({
      on_stale: rule,
      keys: { fact: { policy: "last_write" } },
      steps: [step("a", { writes: ["fact"] }), step("b", { needs: ["a"], reads: ["fact"], writes: ["made"], ...more })],
      outputs: ["made"],
    });
    const changing = (changes: number, told: (words: string) => void = () => {}) => {
      house.playStep = async (goal, request, count) => {
        if (goal === "do a") return "first";
        told([readsIn(request), ...fromGateway(request)].join("\n"));
        if (count <= changes) await house.put(id, "fact", `change ${count}`);
        return `made ${count}`;
      };
    };
    let id = "";

    test("V8 rerun: it is done again with what is so now, in a turn of its own", async () => {
      const told: string[] = [];
      id = await house.start(definition("rerun"));
      changing(1, (words) => told.push(words));
      await house.drain();
      expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { made: "made 2" } });
      expect(await house.step(id, "b")).toMatchObject({ attempts: 2, error: null });
      expect(told[0]).toContain("first");
      expect(told[1]).toContain("change 1");
      expect((await house.eventsOf(id)).filter((type) => type === "step.stale b")).toHaveLength(1);
    });

    test("V8 rerun: at most three times, then it fails", async () => {
      id = await house.start(definition("rerun"));
      changing(10);
      await house.drain();
      expect(house.goals.filter((goal) => goal === "do b")).toHaveLength(4);
      expect(await house.step(id, "b")).toMatchObject({
        status: "failed",
        error: { code: "step.stale", message: expect.stringContaining('"fact"') },
      });
      expect(await house.valueIn(id, "made")).toBeUndefined();
    });

    test("V8 rerun: not where the attempt made a call that must not be made twice", async () => {
      let paid = 0;
      const pay = defineTool({
        name: "message_send",
        description: "Pays.",
        parameters: z.strictObject({}),
        effect: "unsafe",
        run: () => {
          paid++;
          return { output: "paid" };
        },
      });
      house.tools = [...house.tools, pay];
      id = await house.start(definition("rerun"));
      house.playStep = async (goal, _request, count) => {
        if (goal === "do a") return "first";
        if (count === 1) return { calls: [call("message_send")] };
        if (count === 2) await house.put(id, "fact", "changed");
        return "made";
      };
      await house.drain();
      expect(paid).toBe(1);
      expect(await house.step(id, "b")).toMatchObject({ status: "failed", error: { code: "step.stale" } });
    });

    test("V8 rebase: the turn goes on with the difference, and what it answers then rests on it", async () => {
      const told: string[] = [];
      id = await house.start(definition("rebase"));
      changing(2, (words) => told.push(words));
      await house.drain();
      expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { made: "made 3" } });
      expect(await house.step(id, "b")).toMatchObject({ attempts: 1 });
      expect(told[1]).toContain('"fact": you have read version 1; it is at version 2, by operator');
      expect(told[1]).toContain("change 1");
      expect(told[2]).toContain("change 2");
    });

    test("V8 rebase: at most three times, then it fails", async () => {
      id = await house.start(definition("rebase"));
      changing(10);
      await house.drain();
      expect(house.goals.filter((goal) => goal === "do b")).toHaveLength(4);
      expect(await house.step(id, "b")).toMatchObject({ status: "failed", error: { code: "step.stale" } });
    });

    test("V8 warn: it counts, and the run says what was stale", async () => {
      id = await house.start(definition("warn"));
      changing(1);
      await house.drain();
      expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { made: "made 1" } });
      expect(await house.step(id, "b")).toMatchObject({ stale: [{ key: "fact", read: 1, current: 2 }], attempts: 1 });
    });

    test("V8 fail: it fails, and the step's own rule comes before the workflow's", async () => {
      id = await house.start(definition("rerun", { on_stale: "fail" }));
      changing(1);
      await house.drain();
      expect(house.goals.filter((goal) => goal === "do b")).toHaveLength(1);
      expect(await house.step(id, "b")).toMatchObject({ status: "failed", error: { code: "step.stale" } });
    });

    test("V8 a step that wrote itself what it had read is fresh", async () => {
      id = await house.start({
        steps: [step("a", { writes: ["n"] }), step("b", { needs: ["a"], reads: ["n"], writes: ["n"] })],
        outputs: ["n"],
      });
      house.playStep = (goal, _request, count) =>
        goal === "do b" && count === 1 ? { calls: [call("context_write", { key: "n", value: "mine", if_version: 1 })] } : "ok";
      await house.drain();
      expect(await house.run(id)).toMatchObject({ status: "completed", outputs: { n: "mine" } });
    });

    test.each([
      ["after it has added its own", 4, [], 1],
      ["after it has added its own, which it had read", 4, ["list"], 2],
      ["before it adds its own to what it has read, which shows it all", 3, ["list"], 1],
    ])("V8 whoever only adds to a list is not stale by what others add: %s", async (_when, request, reads, attempts) => {
      const isFirst = ({ messages }: ModelRequest): boolean => !messages.some((message) => message.role === "tool");
      house.playStep = async (goal, asked) => {
        if (house.goals.length === request) await house.put(id, "list", "of somebody else");
        return isFirst(asked) ? { calls: [call("context_write", { key: "list", value: goal })] } : "done";
      };
      const id = await house.start({
        keys: { list: { policy: "append" } },
        on_stale: "rerun",
        steps: [step("first", { writes: ["list"] }), step("a", { needs: ["first"], reads, writes: ["list"] })],
      });
      await house.drain();
      expect((await house.run(id)).status).toBe("completed");
      expect((await house.step(id, "a")).attempts).toBe(attempts);
      if (attempts === 1)
        expect(((await house.valueIn(id, "list")) as string[]).toSorted()).toEqual(["do a", "do first", "of somebody else"]);
    });

    test("V8 a write that comes at the very moment of the commit is never passed over", async () => {
      const other = new FlowingHouse(await place.open());
      for (let round = 0; round < 12; round++) {
        id = await house.start(definition("fail"));
        await house.take();
        let ready: () => void = () => {};
        const atCommit = new Promise<void>((resolve) => {
          ready = resolve;
        });
        house.playStep = () => "made";
        house.reached = (point) => point === "turn.answered" && ready();
        const current = id;
        const write = atCommit.then(() => other.put(current, "fact", "changed"));
        // The run ends, and its pool takes no more writes: then the write came too late, which is fine.
        const [, written] = await Promise.all([
          house.drain(),
          write.then(
            () => true,
            () => false,
          ),
        ]);
        house.reached = () => {};
        const { status } = await house.run(id);
        const versions = await store.read.all<{ key: string; version: number; seq: number }>`select key, version, seq from pool_versions
          where pool = ${`run:${id}`} order by seq`;
        const [made, changed] = [versions.find(({ key }) => key === "made"), versions.find(({ version }) => version === 2)];
        expect(changed !== undefined).toBe(written);
        if (status === "completed") expect(changed === undefined || (changed.seq as number) > (made?.seq ?? 0)).toBe(true);
        else expect([written, made]).toEqual([true, undefined]);
      }
      other.remove();
    });
  });
});
