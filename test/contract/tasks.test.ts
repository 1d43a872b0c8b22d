import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { taskListQuery, taskSearchQuery } from "../../src/contract/tasks.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Retention } from "../../src/records/tasks/retention.ts";
import { indexTasks } from "../../src/records/tasks/task-index.ts";
import { addTask, endTask, type NewTaskRow, reopenTask, type TaskEnd } from "../../src/records/tasks/task-rows.ts";
import { Tasks } from "../../src/records/tasks/tasks.ts";
import { removeWorkflowRuns } from "../../src/records/workflows/workflow-run-rows.ts";
import { restoreBackup } from "../../src/store/restore-backup.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, guest, reader } from "../callers.ts";
import { SEED } from "../models/seed.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const SEES: Readonly<Record<string, readonly string[]>> = { coder: ["writer"], overseer: ["*"] };
const newId = idSource(systemClock, systemRandom);
const HOUR = 3_600_000;

interface Opening extends Partial<Pick<NewTaskRow, "id" | "kind" | "agent" | "from" | "parent" | "parentRun">> {
  readonly goal: string;
}

/** Enough for a test: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe.each(PLACES)("tasks on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let tasks: Tasks;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    tasks = new Tasks(store, { get: (id) => ({ sees: SEES[id] ?? [] }) });
  });
  afterEach(() => place.remove());

  const rowOf = (opening: Opening): NewTaskRow => {
    const id = opening.id ?? newId();
    return {
      kind: "delegate",
      agent: "writer",
      from: "main",
      parent: null,
      parentRun: null,
      root: id,
      depth: 1,
      maxDepth: 2,
      chain: [],
      spec: {},
      ...opening,
      id,
    };
  };
  const open = async (opening: Opening): Promise<string> => {
    const row = rowOf(opening);
    await store.transact("open", (tx) => addTask(tx, row));
    return row.id;
  };
  const end = (id: string, ending: Partial<TaskEnd> = {}) =>
    store.transact("end", (tx) => endTask(tx, id, { status: "completed", result: null, error: null, ...ending }));
  const search = async (caller: Caller, q: string, more: object = {}) =>
    (await tasks.search(caller, taskSearchQuery.parse({ q, ...more }))).hits;
  const found = async (caller: Caller, q: string, more: object = {}) => (await search(caller, q, more)).map(({ id }) => id);
  const listed = async (caller: Caller, more: object = {}) =>
    (await tasks.list(caller, taskListQuery.parse(more))).tasks.map(({ id }) => id);

  test("are found by words of goal, result and error, with what was found marked and the agent named", async () => {
    const one = await open({ goal: "Research the Stripe API for webhooks" });
    const two = await open({ goal: "Water the garden", agent: "gardener" });
    expect(await search(OPERATOR, "webhook")).toEqual([
      expect.objectContaining({
        id: one,
        agent: "writer",
        from: "main",
        status: "queued",
        snippet: "Research the Stripe API for **webhooks**",
      }),
    ]);
    await end(one, { result: { summary: "Signatures are verified with a secret" } });
    await end(two, { status: "failed", error: { code: "model.timeout", message: "the tomatoes did not answer" } });
    expect(await found(OPERATOR, "signatures stripe")).toEqual([one]);
    expect(await found(OPERATOR, "tomatoes")).toEqual([two]);
    expect(await found(OPERATOR, "model.timeout")).toEqual([two]);
    expect((await search(OPERATOR, "tomatoes"))[0]).toMatchObject({ agent: "gardener", status: "failed" });
  });

  test("one that goes on after its end is found as open again, without what came of it", async () => {
    const id = await open({ goal: "reconcile" });
    await end(id, { status: "failed", error: { code: "model.timeout", message: "no answer from the ledger" } });
    expect(await found(OPERATOR, "ledger", { status: "failed" })).toEqual([id]);
    await store.transact("reopen", (tx) => reopenTask(tx, id));
    expect(await found(OPERATOR, "reconcile", { status: "queued" })).toEqual([id]);
    expect(await found(OPERATOR, "ledger")).toEqual([]);
  });

  test("what two index at once is indexed once", async () => {
    for (let index = 0; index < 30; index++) await open({ goal: "the same for both" });
    const other = await place.open();
    await Promise.all([indexTasks(store, 10), indexTasks(other, 10), indexTasks(store, 10), indexTasks(other, 10)]);
    expect(await found(OPERATOR, "both", { limit: 100 })).toHaveLength(30);
    expect(await store.read.all`select id from marked_documents`).toHaveLength(30);
  });

  test("understand phrases, prefixes and operators when asked to, and take everything for words otherwise", async () => {
    const one = await open({ goal: "payment client for Stripe" });
    const two = await open({ goal: "client payment of PayPal" });
    const operators = { match: "operators" };
    expect(await found(OPERATOR, '"payment client"', operators)).toEqual([one]);
    expect((await found(OPERATOR, "pay*", operators)).sort()).toEqual([one, two].sort());
    expect((await search(OPERATOR, "str*", operators))[0]?.snippet).toBe("payment client for **Stripe**");
    expect(await found(OPERATOR, "client -stripe", operators)).toEqual([two]);
    expect(await found(OPERATOR, "client NOT stripe", operators)).toEqual([two]);
    expect((await found(OPERATOR, "stripe OR paypal", operators)).sort()).toEqual([one, two].sort());
    expect(await found(OPERATOR, "client AND stripe", operators)).toEqual([one]);
    expect(await found(OPERATOR, "stripe paypal")).toEqual([]);
    expect((await found(OPERATOR, "stripe paypal", { match: "any" })).sort()).toEqual([one, two].sort());
    expect(await found(OPERATOR, "pay*")).toEqual([]);
  });

  test("are found by a long beginning of a word, where very many words begin alike, and where few", async () => {
    const goals = ["a transfer", "a transport", "in transit"];
    await store.transact("fill", async (tx) => {
      for (let index = 0; index < 1_200; index++)
        await store.marked.add(tx, { id: `many-${index}`, text: goals[index % goals.length] as string, marks: [] });
      for (let index = 0; index < 1_200; index++) await store.marked.add(tx, { id: `other-${index}`, text: "a translation", marks: [] });
      await store.marked.add(tx, { id: "last", text: "transport, and after it a transfer", marks: [] });
    });
    const ids = async (text: string, limit = 1_000): Promise<string[]> =>
      (await store.marked.find({ text, match: "operators", marked: [], limit })).map(({ id }) => id);
    const begun = (text: string): number => goals.findIndex((goal) => goal.includes(text));
    const newest = (text: string, count: number): string[] =>
      Array.from({ length: count }, (_, place) => `many-${1_200 - goals.length * (place + 1) + begun(text)}`);
    expect((await ids("translat*")).sort()).toEqual(Array.from({ length: 200 }, (_, place) => `other-${1_000 + place}`).sort());
    expect((await ids("transfe*")).sort()).toEqual(["last", ...newest("transfer", 199)].sort());
    expect(await ids("transfe* transpo*")).toEqual(["last"]);
    expect(await ids("transa*")).toEqual([]);
    expect(await ids("transit* OR translat*", 5)).toHaveLength(5);
  });

  test("come best first: those that are about it before those that mention it", async () => {
    const filler =
      "with a lot of other things that have nothing to do with it, one after another, for quite a while, until the end of the text";
    const mentions = await open({ goal: `Look at invoices once, ${filler} ${filler}` });
    const about = await open({ goal: "Invoices: check invoices, sort invoices" });
    const later = await open({ goal: `Some invoices ${filler}` });
    const ids = await found(OPERATOR, "invoices");
    expect(ids[0]).toBe(about);
    expect(ids.sort()).toEqual([mentions, about, later].sort());
  });

  test("are found by the beginning of an id before those that have it as a word", async () => {
    const id = "1mabcd00000000000001";
    const other = "1mabce00000000000001";
    await open({ id, goal: "first" });
    await open({ id: other, goal: "look into 1mabcd again" });
    const hits = await search(OPERATOR, "1mabcd");
    expect(hits.map((hit) => hit.id)).toEqual([id, other]);
    expect(hits[0]?.snippet).toBe("**1mabcd**00000000000001 first");
    expect(hits[0]?.score).toBeGreaterThan(hits[1]?.score ?? 0);
    expect(await found(OPERATOR, "1MABCE")).toEqual([other]);
    expect(await found(OPERATOR, "1ma")).toEqual([]);
    expect(await found(OPERATOR, "1mab cd")).toEqual([]);
    expect(await found(agent("nobody"), "1mabcd")).toEqual([]);
    expect(await found(agent("main"), "1mabcd", { limit: 1 })).toEqual([id]);
  });

  test("a word is told also where very many ids begin like it", async () => {
    for (let index = 0; index < 10; index++) await open({ id: `1mabcd0000000000000${index}`, goal: "one of many" });
    const word = await open({ goal: "what became of 1mabcd" });
    const ids = await found(OPERATOR, "1mabcd", { limit: 4 });
    expect(ids).toHaveLength(4);
    expect(ids.at(-1)).toBe(word);
  });

  test("are read by the beginning of an id; what one may not see is not there, and neither is what is not", async () => {
    const id = "1mabcd00000000000001";
    await open({ id, goal: "first" });
    await open({ id: "1mabcd00000000000002", goal: "second", agent: "other", from: "another" });
    expect(await tasks.read(agent("main"), "1mabc")).toMatchObject({ id, status: "queued", usage: null, result: null, endedAt: null });
    await expect(tasks.read(OPERATOR, "1mabc")).rejects.toMatchObject({
      code: "request.not_found",
      message: expect.stringContaining("several"),
    });
    const unseen = await tasks.read(agent("nobody"), id).catch((error) => error);
    const unknown = await tasks.read(agent("nobody"), "1mabcd00000000000009").catch((error) => error);
    expect([unseen.code, unseen.message.replaceAll(id, "X")]).toEqual([
      unknown.code,
      unknown.message.replaceAll("1mabcd00000000000009", "X"),
    ]);
    await expect(tasks.read(OPERATOR, "")).rejects.toMatchObject({ code: "request.not_found" });
    await expect(tasks.read(OPERATOR, "%")).rejects.toMatchObject({ code: "request.not_found" });
  });

  test("are listed the newest first, part by part, by agent, status, and below one of them", async () => {
    const ids = [];
    for (const goal of ["a", "b", "c"]) ids.push(await open({ goal }));
    const child = await open({ goal: "child", parent: ids[1] as string, from: "writer", agent: "helper" });
    const grandchild = await open({ goal: "grandchild", parent: child, from: "helper", agent: "helper" });
    await end(ids[0] as string);
    const newest = [...ids, child, grandchild].reverse();
    expect(await listed(OPERATOR)).toEqual(newest);
    const first = await tasks.list(OPERATOR, taskListQuery.parse({ limit: 2 }));
    expect(first.next).toBe(newest[1]);
    const rest = await tasks.list(OPERATOR, taskListQuery.parse({ limit: 10, before: first.next }));
    expect([...first.tasks, ...rest.tasks].map(({ id }) => id)).toEqual(newest);
    expect(rest.next).toBeNull();
    expect(await listed(OPERATOR, { agent: "helper" })).toEqual([grandchild, child]);
    expect(await listed(OPERATOR, { status: "completed" })).toEqual([ids[0]]);
    expect(await listed(OPERATOR, { status: "queued" })).toEqual([grandchild, child, ids[2], ids[1]]);
    expect(await listed(OPERATOR, { below: ids[1] })).toEqual([grandchild, child]);
    expect(await listed(agent("main"), { below: ids[1] })).toEqual([grandchild, child]);
    await expect(listed(agent("helper"), { below: ids[1] })).rejects.toMatchObject({ code: "request.not_found" });
    expect(await listed(agent("helper"))).toEqual([grandchild, child]);
  });

  test("a search by agent and status looks only through those", async () => {
    const one = await open({ goal: "invoices", agent: "writer" });
    const two = await open({ goal: "invoices", agent: "helper" });
    await end(two, { result: "done" });
    expect(await found(OPERATOR, "invoices", { agent: "helper" })).toEqual([two]);
    expect(await found(OPERATOR, "invoices", { status: "queued" })).toEqual([one]);
    expect(await found(OPERATOR, "invoices", { status: "completed" })).toEqual([two]);
    expect(await found(OPERATOR, "invoices", { status: "running" })).toEqual([]);
  });

  test("the words of a mark find nothing: who may see a task is no word of it", async () => {
    await open({ goal: "secret plans", from: "operator", agent: "writer" });
    for (const q of ["viewer operator", "viewer", "task", "status", "open", "", "76696577657220", "viewer writer"])
      for (const match of ["all", "any", "operators"]) expect(await found(agent("nobody"), q || "x", { match })).toEqual([]);
    expect(await found(OPERATOR, "viewer writer", { match: "any" })).toEqual([]);
  });

  test("one whose text names another's mark is not seen by that other", async () => {
    const mark = `\u{E000}${Buffer.from("viewer nobody").toString("hex")}`;
    await open({ goal: `give it to ${mark} please`, from: "operator" });
    expect(await found(agent("nobody"), "please")).toEqual([]);
  });

  test("everybody sees what he opened or did, what is below it, and what those do whom he may look at; and nothing else", async () => {
    const random = randomFrom(SEED);
    const names = ["main", "coder", "writer", "helper", "Writer", "overseer", "jane", "operator"];
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    const made: { id: string; from: string; agent: string | null; parent: string | null }[] = [];
    for (let index = 0; index < 60; index++) {
      const above = random() < 0.6 && made.length > 0 ? pick(made) : null;
      const one = {
        from: above?.agent ?? pick(names),
        agent: random() < 0.15 ? null : pick(names.slice(0, 6)),
        parent: above?.id ?? null,
      };
      made.push({ ...one, id: await open({ ...one, kind: one.agent === null ? "workflow" : "delegate", goal: "the same words for all" }) });
    }
    for (const one of made.filter(() => random() < 0.5)) await end(one.id, { result: "some words more" });
    const isOf = (id: string | null, name: string): boolean => {
      const one = made.find((each) => each.id === id);
      return one !== undefined && (one.from === name || one.agent === name || isOf(one.parent, name));
    };
    const callers: Caller[] = [OPERATOR, reader, ...names.slice(0, 6).map((name) => agent(name)), guest("jane"), guest("operato")];
    callers.push({ ...guest("telegram"), kind: "channel" }, { ...guest("writer"), kind: "channel" });
    for (const caller of callers) {
      const sees = caller.kind === "agent" ? (SEES[caller.name] ?? []) : [];
      const all = caller.kind === "operator" || caller.kind === "reader" || sees.includes("*");
      const eyes = caller.kind === "channel" ? [] : [caller.name, ...sees];
      const expected = made
        .filter(({ id }) => all || eyes.some((name) => isOf(id, name)))
        .map(({ id }) => id)
        .sort();
      const say = `${caller.kind} ${caller.name}, seed ${SEED}`;
      expect((await found(caller, "words", { limit: 100 })).sort(), say).toEqual(expected);
      expect((await listed(caller, { limit: 100 })).sort(), say).toEqual(expected);
      for (const { id } of made) {
        const there = await tasks.read(caller, id).then(
          () => true,
          () => false,
        );
        expect(there, `${say}: ${id}`).toBe(expected.includes(id));
      }
    }
  });

  test("are kept for as long as the config of the moment says, by whoever does them", async () => {
    const keep = new Map<string, number | null>([["writer", HOUR]]);
    const retention = new Retention(store, (name) => keep.get(name) ?? null, removeWorkflowRuns);
    const old = await open({ goal: "old invoices" });
    const forever = await open({ goal: "old invoices", agent: "helper" });
    const running = await open({ goal: "old invoices still open" });
    const plan = await open({ goal: "old invoices by plan", agent: null, from: "planner", kind: "workflow" });
    for (const id of [old, forever, plan]) await end(id);
    await retention.sweep();
    expect(await listed(OPERATOR)).toHaveLength(4);
    await place.elapse(HOUR + 1_000);
    expect(await retention.sweep()).toBe(1);
    expect((await found(OPERATOR, "invoices")).sort()).toEqual([forever, running, plan].sort());
    expect((await listed(agent("main"))).sort()).toEqual([forever, running].sort());
    await expect(tasks.read(agent("main"), old)).rejects.toMatchObject({ code: "request.not_found" });
    expect(await found(OPERATOR, old)).toEqual([]);
    // A shorter time counts for what has ended already.
    keep.set("helper", 1_000);
    keep.set("planner", 1_000);
    await retention.sweep();
    await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([running]);
    expect(await store.read.all`select * from task_viewers where task_id <> ${running}`).toEqual([]);
    await found(OPERATOR, "invoices");
    expect(await store.read.all`select id from marked_documents`).toEqual([{ id: running }]);
  });

  test("one that somebody still goes on with is kept, however old", async () => {
    const retention = new Retention(store, () => 1, removeWorkflowRuns);
    const parent = await open({ goal: "above" });
    const child = await open({ goal: "below", parent });
    await end(child);
    await place.elapse(HOUR);
    await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([child, parent]);
    await end(parent);
    const late = await open({ goal: "below, and not over", parent });
    await place.elapse(HOUR);
    for (let round = 0; round < 3; round++) await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([late, parent]);
    await end(late);
    await place.elapse(HOUR);
    for (let round = 0; round < 3; round++) await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([]);
  });

  test("one that somebody goes on with in this very moment is kept, and can be found", async () => {
    const id = await open({ goal: "once more", agent: null, kind: "workflow" });
    await end(id, { status: "failed" });
    await indexTasks(store);
    await place.elapse(HOUR);
    // Between the look for old ones and their removal.
    const transact = store.transact.bind(store);
    const reopening: Store = Object.create(store, {
      transact: {
        value: async (name: string, body: never, isolation: never) => {
          await transact("reopen", (tx) => reopenTask(tx, id));
          return transact(name, body, isolation);
        },
      },
      read: { value: store.read },
      marked: { value: store.marked },
    });
    expect(await new Retention(reopening, () => 1, removeWorkflowRuns).sweep()).toBe(0);
    expect(await listed(OPERATOR)).toEqual([id]);
    expect(await found(agent("main"), "once more")).toEqual([id]);
  });

  test("one that a turn waits for is kept until the turn has ended", async () => {
    const retention = new Retention(store, () => 1, removeWorkflowRuns);
    await store.transact(
      "run",
      (tx) => tx.run`insert into runs (id, agent, session_key, status, address, input, decision, created_at)
      values ('run', 'main', 'k', 'waiting', '{}', 'x', '{}', now_ms())`,
    );
    const id = await open({ goal: "waited for", parentRun: "run" });
    await end(id);
    await place.elapse(HOUR);
    await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([id]);
    await store.transact("ended", (tx) => tx.run`update runs set status = 'completed', ended_at = now_ms() where id = 'run'`);
    await retention.sweep();
    await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([]);
  });

  test("among very many that fit, the newest are weighed", async () => {
    const oldest = await open({ goal: "same words, same words, same words" });
    await store.transact("open many", async (tx) => {
      for (let index = 0; index < 200; index++) await addTask(tx, rowOf({ goal: "the same words for all of them" }));
    });
    const ids = await found(OPERATOR, "same words", { limit: 100 });
    expect(ids).toHaveLength(100);
    expect(ids).not.toContain(oldest);
    expect(await found(OPERATOR, "same words NOT them", { match: "operators" })).toEqual([oldest]);
  });

  test("a round removes a bounded number, and the rounds together everything", async () => {
    const retention = new Retention(store, () => 1, removeWorkflowRuns);
    for (let index = 0; index < 130; index++) await end(await open({ goal: "many" }));
    await place.elapse(HOUR);
    expect(await retention.sweep()).toBeLessThan(130);
    for (let round = 0; round < 4; round++) await retention.sweep();
    expect(await listed(OPERATOR)).toEqual([]);
  });

  test("a restored backup finds the same for the same", async () => {
    const id = await open({ goal: "payment client" });
    await open({ goal: "payment of others", from: "another", agent: "other" });
    const target = makePlace();
    const folder = mkdtempSync(join(tmpdir(), "guildhall-tasks-"));
    const file = join(folder, "backup.gz");
    try {
      await found(OPERATOR, "payment");
      await store.backup(file);
      await restoreBackup(target.location, file);
      const restored = await target.open();
      const there = new Tasks(restored, { get: () => undefined });
      expect((await there.search(agent("main"), taskSearchQuery.parse({ q: "payments" }))).hits.map((hit) => hit.id)).toEqual([id]);
    } finally {
      await target.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
