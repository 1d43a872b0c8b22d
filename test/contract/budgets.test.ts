import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TurnJournal } from "../../src/acts/turn-journal.ts";
import type { Caller } from "../../src/kernel/caller.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import type { ModelPrice } from "../../src/kernel/model.ts";
import { Approvals } from "../../src/records/access/approvals.ts";
import { addRun, completeRun, failRun, type RunInput, readRunInput, startRun, waitRun } from "../../src/records/sessions/runs.ts";
import { Budgets } from "../../src/records/usage/budgets.ts";
import type { Budget } from "../../src/records/usage/limits.ts";
import { readUsage, recordUsageIn, usageOfRun } from "../../src/records/usage/usage.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { agent, reader } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const DAY_MS = 86_400_000;
/** One token in, or out, is a millionth of a dollar. */
const PLAIN: ModelPrice = { input: 1, output: 1 };
const address = { platform: "t", account: "d", guild: null, chat: "c", topic: null, chatType: "dm" as const, peer: "p", roles: [] };

describe.each(PLACES)("budgets on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let budgets: Budgets;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    budgets = new Budgets(store);
  });
  afterEach(() => place.remove());

  const run = (id: string, agent: string, root: string | null = null) =>
    store.transact("run", async (tx) => {
      const decision = { agent, tier: "named" as const, binding: null, because: "", trace: [] };
      await addRun(tx, { id, agent, sessionKey: `s:${id}`, address, input: "x", decision, refusal: null, root });
      await startRun(tx, id);
    });
  interface Wanted {
    readonly budgets: Readonly<Record<string, Budget>>;
    readonly tokens: number;
    readonly output?: number;
    readonly price?: ModelPrice | null;
    readonly step?: number;
    readonly node?: Store;
  }
  const reserve = (id: string, agent: string, { budgets: by, tokens, output = 100, price = PLAIN, step = 1, node = store }: Wanted) =>
    node.transact(
      "reserve",
      (tx) =>
        new Budgets(node).reserveIn(tx, {
          run: id,
          agent,
          step,
          estimate: { model: "x/y", inputTokens: tokens - output, maxOutputTokens: output, price },
          budgetOf: (one) => by[one] ?? {},
          written: (one, key) => `agents.${one}.budget.${key}`,
        }),
      "locked",
    );
  const settle = (id: string, agent: string, tokens: number, step = 1) =>
    store.transact(
      "settle",
      (tx) =>
        budgets.settleIn(tx, { run: id, agent, step }, { model: "x/y", usage: { inputTokens: tokens, outputTokens: 0 }, cost: tokens }),
      "locked",
    );
  const granted = (reserved: Awaited<ReturnType<typeof reserve>>) => !("refused" in reserved);

  test("a call that would exceed the limit is refused, with the limit, what is spent and where to change it", async () => {
    const by = { a: { tokens_per_day: 1_000 } };
    await run("r1", "a");
    expect(await reserve("r1", "a", { budgets: by, tokens: 600 })).toEqual({ maxOutputTokens: null });
    await settle("r1", "a", 550);
    await run("r2", "a");
    const answer = await reserve("r2", "a", { budgets: by, tokens: 460 });
    if (!("refused" in answer)) throw new Error("granted");
    expect(answer.refused).toMatchObject({
      code: "budget.exceeded",
      message:
        'the agent "a" may spend 1000 tokens a day (agents.a.budget.tokens_per_day): 550 tokens are spent, and this call needs at least 460 tokens',
      details: { key: "tokens_per_day", limit: 1_000, spent: 550, reserved: 0, needed: 460 },
    });
    expect(granted(await reserve("r2", "a", { budgets: by, tokens: 450 }))).toBe(true);
  });

  test("money is counted in millionths of a dollar", async () => {
    const by = { a: { usd_per_day: 0.001 } };
    await run("r1", "a");
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 600, price: { input: 2, output: 2 } }))).toBe(false);
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 500, price: { input: 2, output: 2 } }))).toBe(true);
    const refused = await reserve("r1", "a", { budgets: by, tokens: 200, price: PLAIN, step: 2 });
    expect("refused" in refused && refused.refused.message).toBe(
      'the agent "a" may spend 0.001 USD a day (agents.a.budget.usd_per_day): 0 USD is spent, 0.001 USD reserved by calls that run now, and this call needs at least 0.0002 USD',
    );
  });

  test("however many ask at once, on however many nodes, together they never get more than there is", { timeout: 60_000 }, async () => {
    const other = place.kind === "postgres" ? await place.open() : store;
    const by = { a: { tokens_per_day: 10_000 }, lead: { usd_per_task: 0.005 } };
    const ids = Array.from({ length: 60 }, (_, index) => `r${index}`);
    await run("root", "lead");
    for (const id of ids) await run(id, "a", "root");
    const answers = await Promise.all(
      ids.map((id, index) => reserve(id, "a", { budgets: by, tokens: 300, node: index % 2 ? store : other })),
    );
    // 5,000 millionths for the task come to 16 of 300; the day would have room for 33.
    expect(answers.filter(granted)).toHaveLength(16);
    const won = ids.filter((_, index) => granted(answers[index] as (typeof answers)[number]));
    // While some settle for less, others ask again: what was given back is given out, and no more than that.
    await Promise.all([
      ...won.map((id) => settle(id, "a", 200)),
      ...ids.filter((id) => !won.includes(id)).map((id) => reserve(id, "a", { budgets: by, tokens: 300 })),
    ]);
    const sums = await store.read.get<{ spent: number; held: number }>`select (select cast(sum(cost) as bigint) from model_calls) as spent,
      (select cast(coalesce(sum(cost), 0) as bigint) from budget_reservations) as held`;
    expect(sums?.spent).toBe(3_200);
    expect((sums?.spent ?? 0) + (sums?.held ?? 0)).toBeLessThanOrEqual(5_000);
    expect(
      (await Promise.all(ids.slice(0, 20).map((id) => reserve(id, "a", { budgets: by, tokens: 300, step: 2 })))).filter(granted).length,
    ).toBeLessThanOrEqual(6);
    const after = await store.read.get<{ sum: number }>`select (select cast(sum(cost) as bigint) from model_calls)
      + (select cast(coalesce(sum(cost), 0) as bigint) from budget_reservations) as sum`;
    expect(after?.sum).toBeLessThanOrEqual(5_000);
  });

  test("an attempt after a crash replaces its own reservation", async () => {
    const by = { a: { tokens_per_day: 1_000 } };
    await run("r1", "a");
    for (let attempt = 0; attempt < 5; attempt++) expect(granted(await reserve("r1", "a", { budgets: by, tokens: 800 }))).toBe(true);
    await run("r2", "a");
    expect(granted(await reserve("r2", "a", { budgets: by, tokens: 201 }))).toBe(false);
    expect(granted(await reserve("r2", "a", { budgets: by, tokens: 200 }))).toBe(true);
  });

  test("reservations of runs that have ended or wait are released; those of runs that run are not", async () => {
    const by = { a: { tokens_per_day: 1_000 } };
    for (const id of ["ends", "fails", "waits", "runs"]) {
      await run(id, "a");
      expect(granted(await reserve(id, "a", { budgets: by, tokens: 250 }))).toBe(true);
    }
    expect(await budgets.sweep()).toBe(0);
    await store.transact("end", async (tx) => {
      await completeRun(tx, "ends", "done", null);
      await failRun(tx, "fails", { code: "run.stopped", message: "" });
      await waitRun(tx, "waits");
    });
    await run("next", "a");
    expect(granted(await reserve("next", "a", { budgets: by, tokens: 200 }))).toBe(false);
    expect(await budgets.sweep()).toBe(3);
    expect(granted(await reserve("next", "a", { budgets: by, tokens: 750 }))).toBe(true);
    expect(granted(await reserve("next", "a", { budgets: by, tokens: 751 }))).toBe(false);
  });

  test("what a call came to counts, also where it is more than was reserved, and what nobody tells counts as reserved", async () => {
    const by = { a: { tokens_per_day: 1_000 } };
    await run("r1", "a");
    await reserve("r1", "a", { budgets: by, tokens: 300 });
    await settle("r1", "a", 900);
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 101, step: 2 }))).toBe(false);
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 100, step: 2, output: 50 }))).toBe(true);
    await store.transact("settle", (tx) =>
      budgets.settleIn(tx, { run: "r1", agent: "a", step: 2 }, { model: "x/y", usage: null, cost: null }),
    );
    expect(await usageOfRun(store.read, "r1")).toMatchObject({ calls: 2, inputTokens: 1_000, unpriced: 0 });
  });

  test("a day ends at midnight of UTC, by the database's clock", async () => {
    const by = { a: { tokens_per_day: 1_000 } };
    await run("r1", "a");
    await settle("r1", "a", 1_000);
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 100, step: 2 }))).toBe(false);
    const row = await store.read.get<{ now: number }>`select cast(now_ms() as bigint) as now`;
    await place.elapse(DAY_MS - ((row?.now ?? 0) % DAY_MS) - 5_000);
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 100, step: 2 }))).toBe(false);
    await place.elapse(6_000);
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 1_000, step: 2 }))).toBe(true);
  });

  test("a task is everything that goes back to one message, whoever does it", async () => {
    const by = { lead: { tokens_per_task: 1_000 }, coder: {} };
    await run("asked", "lead");
    await run("child", "coder", "asked");
    await run("grandchild", "coder", "asked");
    await run("elsewhere", "coder");
    await settle("asked", "lead", 300);
    await settle("child", "coder", 300);
    expect(granted(await reserve("child", "coder", { budgets: by, tokens: 300, step: 2 }))).toBe(true);
    expect(granted(await reserve("grandchild", "coder", { budgets: by, tokens: 101 }))).toBe(false);
    expect(granted(await reserve("grandchild", "coder", { budgets: by, tokens: 100 }))).toBe(true);
    expect(granted(await reserve("elsewhere", "coder", { budgets: by, tokens: 100_000 }))).toBe(true);
    await run("next message", "lead");
    expect(granted(await reserve("next message", "lead", { budgets: by, tokens: 1_000 }))).toBe(true);
  });

  test("an agent that works for another's message keeps to its own limit for its own part", async () => {
    const by = { lead: {}, coder: { tokens_per_task: 500 } };
    await run("asked", "lead");
    await run("child", "coder", "asked");
    await settle("asked", "lead", 5_000);
    expect(granted(await reserve("child", "coder", { budgets: by, tokens: 500 }))).toBe(true);
    await settle("child", "coder", 450);
    const refused = await reserve("child", "coder", { budgets: by, tokens: 100, step: 2 });
    expect("refused" in refused && refused.refused.message).toContain("of its own for one message");
  });

  test("in a workflow that is nobody's, each agent keeps to its own limit for its own part, whatever the others spend", async () => {
    const by = { lead: {}, coder: { tokens_per_task: 500 } };
    await store.transact(
      "workflow",
      (tx) => tx.run`insert into tasks (id, kind, agent, opened_by, goal, status, root_id, depth, max_depth, chain, spec, created_at)
        values ('workflow', 'workflow', null, 'operator', 'x', 'queued', 'workflow', 0, 5, '[]', '{}', now_ms())`,
    );
    await run("research", "lead", "workflow");
    await run("code", "coder", "workflow");
    await settle("research", "lead", 5_000);
    expect(granted(await reserve("code", "coder", { budgets: by, tokens: 500 }))).toBe(true);
    await settle("code", "coder", 450);
    await run("more", "coder", "workflow");
    expect(granted(await reserve("more", "coder", { budgets: by, tokens: 100 }))).toBe(false);
  });

  test("an answer is cut to what is left, and refused where that is too little to be worth it", async () => {
    const by = { a: { tokens_per_task: 1_000 } };
    await run("r1", "a");
    expect(await reserve("r1", "a", { budgets: by, tokens: 4_396, output: 4_096 })).toEqual({ maxOutputTokens: 700 });
    expect(await reserve("r1", "a", { budgets: by, tokens: 4_840, output: 4_096 })).toEqual({ maxOutputTokens: 256 });
    expect(granted(await reserve("r1", "a", { budgets: by, tokens: 4_841, output: 4_096 }))).toBe(false);
    expect(
      await reserve("r1", "a", { budgets: { a: { usd_per_task: 0.01 } }, tokens: 4_196, output: 4_096, price: { input: 10, output: 5 } }),
    ).toEqual({
      maxOutputTokens: 1_800,
    });
  });

  test("a model whose price nobody knows is refused where money is limited, and only there", async () => {
    await run("r1", "a");
    const refused = await reserve("r1", "a", { budgets: { a: { usd_per_day: 5 } }, tokens: 300, price: null });
    expect("refused" in refused && refused.refused).toMatchObject({
      code: "budget.unpriced",
      message: expect.stringContaining("prices: { x/y:"),
    });
    expect(granted(await reserve("r1", "a", { budgets: { a: { tokens_per_day: 500 } }, tokens: 300, price: null }))).toBe(true);
    expect(granted(await reserve("r1", "a", { budgets: {}, tokens: 300, price: null }))).toBe(true);
  });

  test("what is not limited is reserved by no row, and recorded all the same", async () => {
    await run("r1", "a");
    await reserve("r1", "a", { budgets: {}, tokens: 300 });
    expect(await store.read.all`select scope from budget_locks union all select run_id from budget_reservations`).toEqual([]);
    const used = { model: "x/y", usage: { inputTokens: 10, outputTokens: 5, cachedInputTokens: 4 }, cost: 1_500_000 };
    await store.transact("record", (tx) => recordUsageIn(tx, { run: "r1", agent: "a", step: 1 }, used));
    await store.transact("record", (tx) => recordUsageIn(tx, { run: "r1", agent: "a", step: 2 }, { ...used, model: "x/z", cost: null }));
    expect(await usageOfRun(store.read, "r1")).toEqual({
      calls: 2,
      inputTokens: 20,
      outputTokens: 10,
      cachedInputTokens: 8,
      costUsd: 1.5,
      unpriced: 1,
    });
    expect(await usageOfRun(store.read, "nobody")).toBeUndefined();
  });

  test("what was used is told by day, by model and by agent, and to an agent its own", async () => {
    const used = { model: "x/y", usage: { inputTokens: 10, outputTokens: 5 }, cost: 250_000 };
    const record = (agent: string, model: string) =>
      store.transact("record", (tx) => recordUsageIn(tx, { run: `${agent}${model}`, agent, step: 1 }, { ...used, model }));
    await record("a", "x/y");
    await place.elapse(DAY_MS);
    await record("a", "x/y");
    await record("a", "x/z");
    await record("b", "x/y");
    const operator: Caller = { ...reader, kind: "operator", name: "operator" };
    const ask = { by: "day" as const, days: 30, agent: undefined };
    const byDay = await readUsage(store.read, operator, ask);
    expect(byDay.map(({ calls, costUsd }) => [calls, costUsd])).toEqual([
      [1, 0.25],
      [3, 0.75],
    ]);
    expect(byDay[1]?.day).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(await readUsage(store.read, operator, { ...ask, days: 1 })).toHaveLength(1);
    expect((await readUsage(store.read, operator, { ...ask, by: "model" })).map(({ model, calls }) => [model, calls])).toEqual([
      ["x/y", 3],
      ["x/z", 1],
    ]);
    const own = agent("b");
    expect((await readUsage(store.read, own, { ...ask, by: "agent" })).map(({ agent, calls }) => [agent, calls])).toEqual([["b", 1]]);
    await expect(readUsage(store.read, own, { ...ask, agent: "a" })).rejects.toMatchObject({ code: "request.not_found" });
  });

  describe("before a model is asked", () => {
    const estimate = { model: "x/y", inputTokens: 100, maxOutputTokens: 4_096, price: PLAIN };
    const taken = async (id: string, agentId: string) => {
      await run(id, agentId);
      await store.transact("work", (tx) => store.queue.enqueue(tx, { kind: "turn", payload: null }));
      const item = (await store.queue.claim("me", 1, 60_000))[0] as ClaimedWork;
      const input = (await readRunInput(store.read, id)) as RunInput;
      const parts = { store, approvals: new Approvals(store, () => "x"), reached: noCrashPoints };
      return { item, journal: new TurnJournal(parts, item, input, 0) };
    };
    const within = (tokens: number) => ({ estimate, budgetOf: () => ({ tokens_per_day: tokens }), written: () => "budget.tokens_per_day" });

    test("what it may come to is set aside, and only an answer for which there is too little is shortened", async () => {
      const { journal } = await taken("r1", "main");
      expect(await journal.reserve(1, { ...within(1), budgetOf: () => ({}) })).toBeNull();
      expect(await journal.reserve(1, within(10_000))).toBeNull();
      expect(await journal.reserve(1, within(1_000))).toBe(900);
    });

    test("a refusal is an event, and a turn that was taken over sets nothing aside", async () => {
      const { journal, item } = await taken("r1", "main");
      await expect(journal.reserve(1, within(100))).rejects.toMatchObject({ code: "budget.exceeded" });
      expect((await store.ledger.read(0, 10)).map(({ type, data }) => [type, (data as { key: string }).key])).toEqual([
        ["budget.refused", "tokens_per_day"],
      ]);
      await store.queue.handBack([item]);
      await expect(journal.reserve(1, within(10_000))).rejects.toMatchObject({ code: "fence.stale" });
    });
  });
});
