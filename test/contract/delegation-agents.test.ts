import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { cancelTask } from "../../src/acts/tasks/cancel-task.ts";
import { tellUntoldEnds } from "../../src/acts/tasks/overdue-tasks.ts";
import type { Label } from "../../src/kernel/label.ts";
import { Mailbox } from "../../src/records/mailbox/mailbox.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { DelegatingHouse, delegate, delegateTo } from "./delegating-house.ts";
import { newId } from "./sessions-place.ts";
import { call } from "./turning-house.ts";

const config = (main: object = {}, ben: object = {}, more: object = {}) => ({
  agents: {
    main: { model: "test/model", default: true, subagents: { agents: ["ben"] }, ...main },
    ben: { model: "test/model", ...ben },
    eve: { model: "test/model", subagents: { agents: ["ben"] } },
  },
  ...more,
});

describe.each(PLACES)("delegating, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: DelegatingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new DelegatingHouse(store, config());
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const replyOf = async (id: string) => (await readRun(store.read, id))?.reply?.text ?? "";
  const sent = async (text = "go"): Promise<string> => {
    const { runId } = await house.send(text);
    await house.takeAll();
    return replyOf(runId);
  };
  const mailTo = (name: string) =>
    store.read.all<{ id: string; type: string; label: string; content: string; state: string }>`select id, type, content, state from mail
      where recipient = ${name} order by id`;
  /** The tools that a turn with this input was offered. */
  const offered = (input: RegExp): string[] => {
    const request = house.asked.find(({ messages }) => messages.some((message) => message.role === "user" && input.test(message.text)));
    return (request?.tools ?? []).map(({ name }) => name).sort();
  };
  const seeing = (label: Label) =>
    defineTool({
      name: "web_fetch",
      description: "of the test",
      parameters: z.looseObject({}),
      effect: "pure",
      run: () => ({ output: "words", labels: [label] }),
    });

  describe("to a named agent", () => {
    test("it reads who asks and whether it may delegate first, then its task and the line to end with, which nobody reads of its result", async () => {
      house.does = ({ input, answers, results }) => {
        if (input === "go") return answers === 0 ? delegateTo("ben", "Look at the sky.") : results.join(" ");
        const id = /<TASK (\S+) COMPLETED>$/.exec(input)?.[1];
        return `It is blue.\n<TASK ${id} COMPLETED>\n`;
      };
      const reply = await sent();
      const [task] = await house.tasks();
      expect(JSON.parse(reply)).toEqual({ task: task?.id, agent: "ben", status: "completed", result: "It is blue." });
      const told = house.asked[1]?.messages[0];
      expect(told?.role === "user" && told.text.split("\n")).toEqual([
        "<DELEGATED from agent main | delegate_task ALLOWED>",
        "",
        "Look at the sky.",
        "",
        "Your answer is read by main, not by a person. When the task is done, end it with this line:",
        `<TASK ${task?.id} COMPLETED>`,
      ]);
    });

    test("an answer without the line is the result all the same, and a line inside it stays", async () => {
      house.does = ({ input, answers, results }) =>
        input === "go" ? (answers === 0 ? delegateTo("ben", "x") : results.join(" ")) : "<TASK abc COMPLETED> is what others write";
      expect(JSON.parse(await sent()).result).toBe("<TASK abc COMPLETED> is what others write");
    });

    test("allow_subagents: false takes the tools that spawn away, in fact and in words", async () => {
      house.does = ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegateTo("ben", "look", { allow_subagents: false })
            : results.join(" ")
          : answers === 0
            ? delegate("further")
            : `ben: ${results.join(" ")}`;
      expect(await sent()).toContain("ben: tool.denied");
      expect(await house.tasks()).toHaveLength(1);
      expect(offered(/delegate_task NOT ALLOWED/)).toEqual(["task_cancel", "task_check", "task_search"]);
    });

    test("whoever is as deep as it goes is told that it may not delegate", async () => {
      house.does = ({ input, answers, results }) =>
        input === "go" ? (answers === 0 ? delegateTo("ben", "look", { max_depth: 1 }) : results.join(" ")) : "seen";
      await sent();
      expect(house.asked[1]?.messages[0]).toMatchObject({ text: expect.stringContaining("delegate_task NOT ALLOWED") });
    });

    test("a conversation carries what was said, apart from those of others by the same name", async () => {
      house.does = ({ input, answers, results, request }) =>
        input.startsWith("<DELEGATED")
          ? `heard ${request.messages.filter(({ role }) => role === "user").length}`
          : answers === 0
            ? delegateTo("ben", input, input.startsWith("alone") ? {} : { conversation: "c" })
            : results.join(" ");
      expect(await sent("one")).toContain("heard 1");
      expect(await sent("two")).toContain("heard 2");
      expect(await sent("alone")).toContain("heard 1");
      const { runId } = await house.send("other", { text: "other", chat: "e", peer: "e" });
      await house.takeAll();
      expect(await replyOf(runId)).toContain("heard 3");
      house.reconfigure({ ...config(), bindings: [{ agent: "eve", telegram: "*" }] });
      expect(await sent("of eve")).toContain("heard 1");
      expect(await sent("again")).toContain("heard 2");
    });
  });

  describe("rights", () => {
    test("a named agent acts within its caller's rights, and with its own where the operator wrote so", async () => {
      house.tools = [...house.delegation, seeing("external")];
      house.does = ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegateTo("ben", "fetch")
            : results.join(" ")
          : answers === 0
            ? { calls: [call("web_fetch")] }
            : `ben: ${results.join(" ")}`;
      house.reconfigure(config({ tools: ["agent_delegate"] }));
      expect(await sent()).toContain("ben: tool.denied");
      house.reconfigure(config({ tools: ["agent_delegate"], subagents: { agents: [{ id: "ben", rights: "own" }] } }));
      const { runId } = await house.send("go");
      await house.takeAll();
      expect(await replyOf(runId)).toContain("ben: words");
      // What it has seen comes along all the same.
      expect((await house.calls(runId))[0]?.labels).toEqual(["external"]);
    });

    test("children have no memory, no mail, no messages and nobody to ask, unless the call names them, and never more than their parent", async () => {
      const names = ["memory_save", "memory_search", "clarify", "message_send", "mail_send", "mail_read", "file_read", "schedule"];
      const tools = names.map((name) =>
        defineTool({ name, description: "x", parameters: z.looseObject({}), effect: "pure", run: () => ({ output: "done" }) }),
      );
      house.tools = [...house.delegation, ...tools];
      house.reconfigure(config({ tools: { profile: "full", deny: ["memory_save"] } }));
      const goals: Record<string, unknown> = {
        plain: undefined,
        named: ["mail_send", "memory_save", "memory_search", "file_read"],
        grouped: ["group:memory", "clarify"],
        profile: "messaging",
        wild: ["*"],
        also: { profile: "minimal", also_allow: ["mail_*"] },
      };
      house.does = ({ input, answers }) =>
        input === "go" && answers === 0
          ? { calls: [call("delegate_task", { tasks: Object.entries(goals).map(([goal, given]) => ({ goal, tools: given })) })] }
          : "ok";
      house.reconfigure(config({ tools: { profile: "full", deny: ["memory_save"] }, subagents: { max_children: 10 } }));
      await sent();
      const delegation = ["agent_delegate", "delegate_task", "task_cancel", "task_check", "task_search"];
      expect(offered(/^plain$/)).toEqual([...delegation, "file_read"].sort());
      expect(offered(/^named$/)).toEqual(["file_read", "mail_send", "memory_search"]);
      expect(offered(/^grouped$/)).toEqual(["clarify", "memory_search"]);
      expect(offered(/^profile$/)).toEqual([]);
      expect(offered(/^wild$/)).toEqual([...delegation, "file_read"].sort());
      expect(offered(/^also$/)).toEqual(["mail_read", "mail_send"]);
    });

    test("what was taken from the parent meanwhile is taken from the child too", async () => {
      house.tools = [...house.delegation, seeing("external")];
      house.does = ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegate("fetch")
            : results.join(" ")
          : answers === 0
            ? { calls: [call("web_fetch")] }
            : results.join(" ");
      const { runId } = await house.send("go");
      await house.take();
      house.reconfigure(config({ tools: { profile: "full", deny: ["web_fetch"] } }));
      await house.takeAll();
      expect(await replyOf(runId)).toContain("tool.denied");
    });
  });

  describe("labels", () => {
    test.each(["external", "secret"] as const)("what a child has seen (%s) its parent has seen", async (label) => {
      house.tools = [...house.delegation, seeing(label)];
      house.does = ({ input, answers }) =>
        input === "go" ? (answers === 0 ? delegate("fetch") : "ok") : answers === 0 ? { calls: [call("web_fetch")] } : "seen";
      const { runId } = await house.send("go");
      await house.takeAll();
      expect((await house.calls(runId))[0]).toMatchObject({ state: "done", labels: [label] });
    });

    test("a task begins with what its opener has seen, and so does what that opens", async () => {
      const acting = defineTool({
        name: "terminal",
        description: "acts",
        parameters: z.looseObject({}),
        effect: "unsafe",
        consequential: true,
        run: () => ({ output: "acted" }),
      });
      house.tools = [...house.delegation, seeing("external"), acting];
      house.does = ({ input, answers }) =>
        input === "go"
          ? answers === 0
            ? { calls: [call("web_fetch")] }
            : delegateTo("ben", "pass on")
          : input.includes("pass on") && answers === 0
            ? delegate("act")
            : { calls: [call("terminal")] };
      await house.send("go");
      await house.takeAll();
      expect(await house.approvals.list({ state: "asked", limit: 5 })).toMatchObject([{ agent: "ben", tool: "terminal" }]);
    });
  });

  describe("in the background", () => {
    test("the caller goes on, and its end comes as one mail that wakes it", async () => {
      house.does = ({ input, answers, results }) =>
        input === "go" ? (answers === 0 ? delegateTo("ben", "dig", { background: true }) : results.join(" ")) : "a bone";
      const { runId } = await house.send("go");
      await house.take();
      expect(JSON.parse(await replyOf(runId))).toMatchObject({ agent: "ben", status: "queued" });
      await house.takeAndDieAt("turn.committed");
      await house.takeAll();
      const [task] = await house.tasks();
      const mail = await mailTo("main");
      expect(mail.map(({ content }) => JSON.parse(content))).toEqual([
        { task: task?.id, agent: "ben", goal: "dig", status: "completed", result: "a bone" },
      ]);
      // A turn of its own, which was told of it.
      expect(JSON.stringify(house.asked.at(-1))).toContain("a bone");
    });

    test("it is open until it ends, also when the turn that opened it has ended; its opener may end it, and is not written to about that", async () => {
      house.does = ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegateTo("ben", "dig", { background: true })
            : results.join(" ")
          : input === "stop it"
            ? answers === 0
              ? { calls: [call("task_cancel", { id: JSON.parse(goReply).task.slice(0, 14) })] }
              : results.join(" ")
            : "never";
      let goReply = "";
      const { runId } = await house.send("go");
      await house.take();
      goReply = await replyOf(runId);
      const [dig] = await house.claim("elsewhere");
      const stop = await house.send("stop it");
      await house.takeAll();
      expect(await replyOf(stop.runId)).toContain('"cancelled"');
      await house.take(dig);
      expect((await house.tasks())[0]).toMatchObject({ status: "cancelled", error: { message: "cancelled by main" } });
      expect(await mailTo("main")).toEqual([]);
    });

    test("who did not end it himself is told that it was cancelled", async () => {
      house.does = ({ input, answers }) => (input === "go" && answers === 0 ? delegateTo("ben", "dig", { background: true }) : "ok");
      await house.send("go");
      await house.take();
      await cancelTask(house.taskParts, (await house.tasks())[0]?.id as string, "operator");
      expect((await mailTo("main")).map(({ content }) => JSON.parse(content))).toMatchObject([{ status: "cancelled" }]);
    });

    test("a full mailbox loses nothing: the end is told when there is room", async () => {
      house.does = ({ input, answers }) => (input === "go" && answers === 0 ? delegateTo("ben", "dig", { background: true }) : "ok");
      const mailbox = new Mailbox(store, newId);
      const ben = { kind: "agent", name: "ben", roles: [], run: null, step: null, call: null } as const;
      const letter = {
        to: "main",
        type: "x",
        content: 1,
        priority: "normal",
        conversation: null,
        readers: [],
        wake: false,
        expires_ms: 60_000,
      } as const;
      await house.send("go");
      await house.take();
      for (let sentSoFar = 0; sentSoFar < 100; sentSoFar++) await mailbox.send(ben, { ...letter, readers: [] });
      await house.take();
      expect((await house.tasks())[0]?.status).toBe("completed");
      expect(await mailTo("main")).toHaveLength(100);
      await tellUntoldEnds(house.taskParts);
      expect(await mailTo("main")).toHaveLength(100);
      await place.tamper("delete from mail");
      await tellUntoldEnds(house.taskParts);
      await tellUntoldEnds(house.taskParts);
      expect((await mailTo("main")).map(({ type }) => type)).toEqual(["task"]);
    });

    test("what must not leave is not in the mail, and what is long is there in part", async () => {
      house.tools = [...house.delegation, seeing("secret")];
      house.does = ({ input, answers }) =>
        input === "go"
          ? answers === 0
            ? { calls: ["hide", "long"].map((goal) => call("agent_delegate", { agent: "ben", goal, background: true }, goal)) }
            : "ok"
          : input.includes("hide")
            ? answers === 0
              ? { calls: [call("web_fetch")] }
              : "the password"
            : "x".repeat(100_000);
      await house.send("go");
      await house.takeAll();
      const [hidden, long] = (await mailTo("main")).map(({ content }) => JSON.parse(content));
      expect(hidden).toMatchObject({ status: "completed", more: expect.stringContaining("task_check") });
      expect(JSON.stringify(hidden)).not.toContain("password");
      expect(long.result).toHaveLength(16_000);
    });
  });

  describe("a look at tasks", () => {
    test("one may check, find and cancel one's own and what is below, and nothing of others", async () => {
      const script: Record<string, (id: string) => ReturnType<typeof delegate>> = {
        check: (id) => ({ calls: [call("task_check", { id: id.slice(0, 15) })] }),
        cancel: (id) => ({ calls: [call("task_cancel", { id })] }),
        search: () => ({ calls: [call("task_search", { query: "digging" })] }),
      };
      let id = "";
      house.does = ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegateTo("ben", "digging holes", { background: true })
            : "ok"
          : (script[input]?.(id) && answers === 0 ? script[input]?.(id) : results.join(" ")) || "seen";
      await house.send("go");
      await house.take();
      const [task] = await house.tasks();
      id = task?.id as string;
      const [dig] = await house.claim("elsewhere");
      expect(JSON.parse(await sent("check"))).toMatchObject({ task: id, agent: "ben", goal: "digging holes", status: "queued" });
      expect(JSON.parse(await sent("search")).hits).toMatchObject([{ task: id, agent: "ben" }]);
      house.reconfigure({ ...config(), bindings: [{ agent: "eve", telegram: "*" }] });
      expect(await sent("check")).toContain("there is no task");
      expect(await sent("cancel")).toContain("there is no task");
      expect(JSON.parse(await sent("search")).hits).toEqual([]);
      // Whoever does it sees it, and may not end it: that is for those who opened it.
      house.reconfigure({ ...config(), bindings: [{ agent: "ben", telegram: "*" }] });
      expect(JSON.parse(await sent("check"))).toMatchObject({ task: id });
      expect(await sent("cancel")).toContain("opened neither by you");
      await house.take(dig);
      expect((await house.tasks())[0]?.status).toBe("completed");
    });

    test("a child cannot end what it is working on", async () => {
      house.does = async ({ input, answers, results }) =>
        input === "go"
          ? answers === 0
            ? delegate("end")
            : results.join(" ")
          : answers === 0
            ? { calls: [call("task_cancel", { id: (await house.tasks())[0]?.id })] }
            : results.join(" ");
      expect(await sent()).toContain("what you are working on");
    });
  });

  test("the model of a child: what the call says, what the agent says, what everybody says, the parent's; one that is not there is refused", async () => {
    house.does = ({ input, answers, results }) =>
      input.startsWith("{") ? (answers === 0 ? delegate("x", JSON.parse(input) as object) : results.join(" ")) : "done";
    const modelOf = async (given: object) => {
      await sent(JSON.stringify(given));
      return (await house.tasks()).at(-1)?.spec.model;
    };
    expect(await modelOf({})).toBeUndefined();
    house.reconfigure(config({}, {}, { subagent: { model: "test/global" } }));
    expect(await modelOf({})).toBe("test/global");
    house.reconfigure(config({ subagents: { model: "test/own" } }, {}, { subagent: { model: "test/global" } }));
    expect(await modelOf({})).toBe("test/own");
    expect(await modelOf({ model: "test/called" })).toBe("test/called");
    expect(await sent(JSON.stringify({ model: "nobody/none" }))).toContain("model.unknown");
  });

  test("an answer of a given shape is that shape, corrected once; else the child has failed", async () => {
    const said: string[] = [];
    house.does = ({ input, answers, results }) => {
      if (input !== "go") return said.shift() ?? "nothing";
      const output_schema = { type: "object", required: ["open"], properties: { open: { type: "integer" } } };
      return answers === 0 ? delegate("count", { output_schema }) : results.join(" ");
    };
    said.push('{"open": 3}');
    expect(JSON.parse(await sent())).toMatchObject({ status: "completed", result: { open: 3 } });
    said.push("three", '{"open": 3}');
    expect(JSON.parse(await sent())).toMatchObject({ status: "completed", result: { open: 3 } });
    said.push("three", "four");
    expect(JSON.parse(await sent())).toMatchObject({ status: "failed", error: { code: "task.bad_answer" } });
  });

  test("delegate_task takes one of goal, tasks and workflow, and a schema that is one", async () => {
    house.does = ({ input, answers, results }) =>
      answers === 0 ? { calls: [call("delegate_task", JSON.parse(input) as object)] } : results.join(" ");
    expect(await sent("{}")).toContain("one of goal, tasks and workflow");
    expect(await sent('{"goal":"a","tasks":[{"goal":"b"}]}')).toContain("one of goal, tasks and workflow");
    expect(await sent('{"tasks":[{"context":"b"}]}')).toContain("needs a goal");
    expect(await sent('{"goal":"a","output_schema":{"$ref":"#/nowhere"}}')).toContain("output_schema");
    expect(await sent('{"workflow":[{"id":"a","goal":"x","needs":["b"]}]}')).toContain("workflow");
    expect(await house.tasks()).toEqual([]);
  });

  test("steps build on each other, below the turn that asks for them, and what they write comes of it", async () => {
    house.does = ({ input, answers, results }) =>
      input === "go"
        ? answers === 0
          ? {
              calls: [
                call("delegate_task", {
                  workflow: [
                    { id: "one", goal: "say one", writes: ["a"] },
                    { id: "two", goal: "say two", needs: ["one"], reads: ["a"], writes: ["b"] },
                  ],
                }),
              ],
            }
          : results.join(" ")
        : input.includes("say one")
          ? "uno"
          : "due";
    const { runId } = await house.send("go");
    await house.takeAll();
    expect(JSON.parse(await replyOf(runId))).toMatchObject({ status: "completed", outputs: { a: "uno", b: "due" } });
    const [run] = await house.tasks();
    expect(run).toMatchObject({ kind: "workflow", from: "main", parentRun: runId, depth: 1 });
  });

  test("stopping the turn that asked ends the steps too", async () => {
    house.does = ({ input }) =>
      input === "go"
        ? {
            calls: [
              call("delegate_task", {
                workflow: [
                  { id: "one", goal: "say one" },
                  { id: "two", goal: "say two" },
                ],
              }),
            ],
          }
        : delegate("x");
    const { runId } = await house.send("go");
    await house.take();
    await house.take();
    await store.transact("stop", (tx) => stopRunIn(house.taskParts, tx, runId, "operator"), "locked");
    expect((await house.tasks()).map(({ status }) => status)).toEqual(["cancelled", "cancelled", "cancelled", "cancelled"]);
    expect(await store.queue.counts()).toEqual({});
  });
});
