import { Role, type SendMessageRequest } from "@a2a-js/sdk";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { askForTaskIn } from "../../src/acts/tasks/ask-for-task.ts";
import { cancelTaskIn } from "../../src/acts/tasks/cancel-task.ts";
import type { TaskParts } from "../../src/acts/tasks/task-parts.ts";
import { HOPS_EXTENSION } from "../../src/contract/a2a.ts";
import { openAsked } from "../../src/edges/a2a/open-asked.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { type AskedQuery, type AskedTask, countAskedTasks, listAskedTasks, readAskedTask } from "../../src/records/tasks/asked-tasks.ts";
import { houseId } from "../../src/records/tasks/house-id.ts";
import { readTask } from "../../src/records/tasks/task-rows.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { newId, TalkingHouse } from "./sessions-place.ts";

const CONFIG = {
  a2a: { agents: ["main"], max_open: 3, max_depth: 4 },
  agents: { main: { guests: "*", subagents: { max_depth: 3 } }, caller: { subagents: { max_depth: 1, agents: ["main"] } } },
};
const guest = (name: string): Caller => ({ ...OPERATOR, kind: "guest", name });

function saying(text: string, messageId: string, hops?: unknown, contextId = ""): SendMessageRequest {
  return {
    tenant: "",
    message: {
      messageId,
      contextId,
      taskId: "",
      role: Role.ROLE_USER,
      parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }],
      metadata: hops === undefined ? undefined : { [HOPS_EXTENSION]: hops },
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: undefined,
  };
}

describe.each(PLACES)("tasks that come from elsewhere on %s", (_name, place) => {
  let at: StorePlace;
  let store: Store;
  let parts: TaskParts;

  beforeEach(async () => {
    at = place();
    store = await at.open();
    parts = taskParts(store, newId, new TalkingHouse(store, CONFIG).agents);
  });

  afterEach(() => at.remove());

  const ask = (caller: Caller, text: string, more: Partial<{ id: string; hops: unknown; context: string }> = {}, by = parts) =>
    openAsked(by, caller, "main", saying(text, more.id ?? newId(), more.hops, more.context));

  /** Another node on the same database; SQLite has one. */
  async function another(): Promise<TaskParts> {
    if (at.kind === "sqlite") return parts;
    const other = await at.open();
    return taskParts(other, newId, new TalkingHouse(other, CONFIG).agents);
  }

  test("however many come at once, from two nodes: no more are open than may be", async () => {
    const nodes = [parts, await another()];
    const asked = await Promise.allSettled(Array.from({ length: 30 }, (_, n) => ask(guest("eager"), `number ${n}`, {}, nodes[n % 2])));
    const opened = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(opened).toHaveLength(3);
    for (const one of asked) if (one.status === "rejected") expect(one.reason).toMatchObject({ code: "task.too_many" });
    // Another one's tasks are not counted, and one that has ended makes room.
    await ask(guest("patient"), "mine");
    await store.transact("cancel", (tx) => cancelTaskIn(parts, tx, (opened[0] as AskedTask).id, "eager"), "locked");
    await ask(guest("eager"), "one more");
    await expect(ask(guest("eager"), "and another")).rejects.toMatchObject({ code: "task.too_many" });
  });

  test("the same message, at once and from two nodes, opens one task", async () => {
    const nodes = [parts, await another()];
    const opened = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(guest("eager"), "once", { id: "m1" }, nodes[n % 2])));
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    expect((await ask(guest("patient"), "once", { id: "m1" })).id).not.toBe(opened[0]?.id);
    await expect(ask(guest("eager"), "twice", { id: "m1" })).rejects.toMatchObject({ code: "request.key_reused" });
  });

  test("what is claimed of depth and houses is believed where it narrows", async () => {
    const placed = async (caller: Caller, hops?: unknown) => {
      const { id } = await ask(caller, "go on", { hops });
      const task = await readTask(store.read, id);
      return { depth: task?.depth, maxDepth: task?.maxDepth, chain: task?.chain, hops: task?.spec.hops };
    };
    expect(await placed(guest("one"))).toEqual({ depth: 1, maxDepth: 3, chain: ["one", "main"], hops: undefined });
    const lies = { houses: ["a"], depth: 0, max_depth: 99 };
    expect(await placed(guest("two"), lies)).toEqual({ depth: 1, maxDepth: 3, chain: ["two", "main"], hops: ["a"] });
    expect(await placed(guest("two"), { houses: ["a", "b"], depth: 2, max_depth: 2 })).toMatchObject({ depth: 2, maxDepth: 2 });
    await expect(placed(guest("two"), { houses: ["a"], depth: 5 })).rejects.toMatchObject({ code: "task.too_deep" });
    const agent: Caller = { ...OPERATOR, kind: "agent", name: "caller" };
    expect(await placed(agent)).toMatchObject({ depth: 1, maxDepth: 1, chain: ["caller", "main"] });
    await expect(placed(agent, { houses: ["a"], depth: 2 })).rejects.toMatchObject({ code: "task.too_deep" });
  });

  test("a task that has been in this house before is refused, and so is one with too long a way behind it", async () => {
    const own = await houseId(store, newId);
    await expect(ask(guest("one"), "x", { hops: { houses: ["a", own], depth: 2 } })).rejects.toMatchObject({ code: "task.cycle" });
    const many = Array.from({ length: 16 }, (_, n) => `h${n}`);
    await expect(ask(guest("one"), "x", { hops: { houses: many, depth: 1 } })).rejects.toMatchObject({ code: "task.too_deep" });
    expect(await countAskedTasks(store.read, everything, 10)).toBe(0);
  });

  test("a guest's words are external, an operator's are not", async () => {
    const labelsOf = async ({ id }: AskedTask) => (await readTask(store.read, id))?.spec.labels;
    expect(await labelsOf(await ask(guest("one"), "x"))).toEqual(["external"]);
    expect(await labelsOf(await ask(OPERATOR, "x"))).toBeUndefined();
  });

  test("words of an agent that has read something external outside its turns are external", async () => {
    const agent: Caller = { ...OPERATOR, kind: "agent", name: "caller" };
    const asked = async (): Promise<unknown[]> => {
      const direct = await store.transact("ask", (tx) => askForTaskIn(parts, tx, agent, { agent: "main", goal: "x" }), "locked");
      const ids = [direct, (await ask(agent, "x")).id];
      return Promise.all(ids.map(async (id) => (await readTask(store.read, id))?.spec.labels));
    };
    expect(await asked()).toEqual([undefined, undefined]);
    await store.transact("read", (tx) => parts.pools.noteExternalIn(tx, agent), "locked");
    await at.tamper("update tasks set ended_at = 1");
    expect(await asked()).toEqual([["external"], ["external"]]);
  });

  const everything: AskedQuery = { agent: "main", from: null, statuses: null, conversation: null, since: null };

  test("tasks are listed by caller, context, state and time, the newest first", async () => {
    const first = await ask(OPERATOR, "first", { context: "herons" });
    const second = await ask(OPERATOR, "second", { context: "herons" });
    const third = await ask(guest("one"), "third");
    await store.transact("cancel", (tx) => cancelTaskIn(parts, tx, first.id, "operator"), "locked");
    const found = async (query: Partial<AskedQuery>, before: string | null = null, limit = 10) =>
      (await listAskedTasks(store.read, { ...everything, ...query }, before, limit)).map(({ goal }) => goal);
    expect(await found({})).toEqual(["third", "second", "first"]);
    expect(await found({}, third.id, 1)).toEqual(["second"]);
    expect(await found({ from: "one" })).toEqual(["third"]);
    expect(await found({ conversation: "herons" })).toEqual(["second", "first"]);
    expect(await found({ statuses: ["cancelled"] })).toEqual(["first"]);
    expect(await found({ statuses: ["queued"] })).toEqual(["third", "second"]);
    expect(await found({ since: second.createdAt + 1_000_000 })).toEqual([]);
    expect(await found({ agent: "caller" })).toEqual([]);
    expect(await countAskedTasks(store.read, { ...everything, from: "operator" }, 10)).toBe(2);
    expect(await countAskedTasks(store.read, { ...everything, from: "operator" }, 1)).toBe(1);
    expect(await readAskedTask(store.read, first.id)).toMatchObject({ status: "cancelled", conversation: "herons" });
  });
});
