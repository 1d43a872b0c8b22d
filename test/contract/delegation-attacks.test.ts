import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { cancelTask } from "../../src/acts/tasks/cancel-task.ts";
import { openTaskIn } from "../../src/acts/tasks/open-task.ts";
import { tellUntoldEnds } from "../../src/acts/tasks/overdue-tasks.ts";
import { resumeWorkflowIn } from "../../src/acts/workflows/change-workflow.ts";
import { newMail } from "../../src/contract/mail.ts";
import { Mailbox } from "../../src/records/mailbox/mailbox.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import { Retention } from "../../src/records/tasks/retention.ts";
import { removeWorkflowRuns } from "../../src/records/workflows/workflow-run-rows.ts";
import type { Store } from "../../src/store/store.ts";
import { agent } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { DelegatingHouse, delegate, delegateTo } from "./delegating-house.ts";
import { newId } from "./sessions-place.ts";
import { call } from "./turning-house.ts";

const CONFIG = {
  agents: {
    main: { model: "test/model", default: true, subagents: { max_depth: 8, agents: ["ben"] } },
    ben: { model: "test/model", subagents: { max_depth: 8, agents: ["cara"] } },
    cara: { model: "test/model" },
  },
};
/** Each is twice the next one: none is long, and to check them all takes for ever. */
const DOUBLING = {
  $ref: "#/$defs/d0",
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [
      `d${index}`,
      index === 39 ? {} : { allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  ),
};

describe.each(PLACES)("whoever delegates and tries everything, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: DelegatingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new DelegatingHouse(store, CONFIG);
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });
  const replyOf = async (id: string) => (await readRun(store.read, id))?.reply?.text;
  const mailTo = async (name: string) =>
    (await store.read.all<{ content: string }>`select content from mail where recipient = ${name} and type = 'task'`).map(({ content }) =>
      JSON.parse(content),
    );

  test("workflows inside workflows end with what is above them", async () => {
    house.does = ({ input, answers }) => {
      const level = Number(/level (\d)/.exec(input)?.[1] ?? 0);
      if (answers > 0 || level >= 3) return "done";
      return { calls: [call("delegate_task", { workflow: [{ id: "only", goal: `level ${level + 1}` }] })] };
    };
    const { runId } = await house.send("go");
    for (let taken = 0; taken < 3; taken++) await house.take();
    const before = await house.tasks();
    expect(before.map(({ kind }) => kind)).toEqual(["workflow", "step", "workflow", "step", "workflow", "step"]);
    await cancelTask(house.taskParts, before[0]?.id as string, "operator");
    expect((await house.tasks()).map(({ status }) => status)).toEqual(Array(6).fill("cancelled"));
    await house.takeAll();
    expect(await replyOf(runId)).toBe("done");
  });

  test("an answer of blanks is read in no time", { timeout: 20_000 }, async () => {
    house.does = ({ input, answers, results }) =>
      input === "go" ? (answers === 0 ? delegate("blanks") : `${results.join("").length > 100}`) : `one${" ".repeat(300_000)}two`;
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(await replyOf(runId)).toBe("true");
  });

  test("an answer that is nested too deeply to be kept is none", async () => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    house.does = ({ input, answers, results }) =>
      input === "go" ? (answers === 0 ? delegate("deep", { output_schema: {} }) : results.join(" ")) : deep;
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(await replyOf(runId)).toContain("task.bad_answer");
  });

  test.each([
    ["that doubles itself", DOUBLING],
    ["that is very long", { description: "x".repeat(70_000) }],
    ["without an end", { allOf: [{ $ref: "#" }] }],
  ])("a schema %s is refused, and nothing is opened", { timeout: 20_000 }, async (_what, output_schema) => {
    house.does = ({ answers, results }) => (answers === 0 ? delegate("x", { output_schema }) : results.join(" "));
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(await replyOf(runId)).toContain("output_schema:");
    expect(await house.tasks()).toEqual([]);
  });

  test("an answer that a schema cannot be done with is none", { timeout: 20_000 }, async () => {
    const output_schema = { type: "string", pattern: "^(a+)+$" };
    house.does = ({ input, answers, results }) =>
      input === "go" ? (answers === 0 ? delegate("slow", { output_schema }) : results.join(" ")) : JSON.stringify(`${"a".repeat(60)}!`);
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(await replyOf(runId)).toContain("task.bad_answer");
  });

  test("what does not fit into a mail does not keep a task from ending", async () => {
    house.does = ({ input, answers }) =>
      input === "go" ? (answers === 0 ? delegateTo("ben", "work", { background: true }) : "later") : "\u0001".repeat(15_000);
    await house.send("go");
    await house.takeAll();
    expect(await house.tasks()).toMatchObject([{ status: "completed", error: null }]);
    expect(await mailTo("main")).toMatchObject([{ status: "completed", more: expect.stringContaining("task_check") }]);
  });

  test("whoever's mailbox is full keeps nobody else from being told, and what he was not told of is kept", async () => {
    const open = (from: string, to: string) =>
      store.transact(
        "open",
        (tx) => openTaskIn(house.taskParts, tx, { kind: "api", agent: to, from, parent: null, goal: "work", spec: { background: true } }),
        "locked",
      );
    for (let opened = 0; opened < 25; opened++) await open("main", "ben");
    await open("ben", "cara");
    await house.takeAll();
    await place.tamper("delete from mail");
    await place.tamper("update tasks set untold = 1");
    const mailbox = new Mailbox(store, newId);
    const full = newMail.parse({ to: "main", type: "note", content: 1 });
    for (let sent = 0; sent < 100; sent++) await mailbox.send(agent("ben"), full);
    expect(await tellUntoldEnds(house.taskParts)).toBe(1);
    expect([await mailTo("ben"), await mailTo("main")]).toMatchObject([[{ agent: "cara" }], []]);
    await place.elapse(60_000);
    for (let round = 0; round < 3; round++) await new Retention(store, () => 1, removeWorkflowRuns).sweep();
    expect((await house.tasks()).filter(({ from }) => from === "main")).toHaveLength(25);
  });

  test("whoever waited for a task that is no longer kept is told so", async () => {
    house.does = ({ input, answers, results }) => (input === "go" ? (answers === 0 ? delegate("add") : results.join(" ")) : "two");
    const { runId } = await house.send("go");
    await house.take();
    await house.take();
    await place.tamper("delete from tasks");
    await house.takeAll();
    expect(await replyOf(runId)).toContain("no longer kept");
  });

  test("a workflow whose task is no longer kept does not begin again", async () => {
    house.does = ({ input, answers }) =>
      input === "go" && answers === 0 ? { calls: [call("delegate_task", { workflow: [{ id: "only", goal: "x" }] })] } : "ok";
    await house.send("go");
    await house.take();
    const [workflow] = await house.tasks();
    await cancelTask(house.taskParts, workflow?.id as string, "operator");
    await house.takeAll();
    await place.elapse(60_000);
    // As long as there were rules for tasks alone, the run stayed.
    await new Retention(
      store,
      () => 1,
      async () => {},
    ).sweep();
    const resumed = store.transact("resume", (tx) => resumeWorkflowIn(house.taskParts, tx, workflow?.id as string, "operator"), "locked");
    await expect(resumed).rejects.toMatchObject({ code: "workflow.over" });
  });
});
