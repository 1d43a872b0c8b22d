import { readFileSync } from "node:fs";
import { type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HOPS_EXTENSION } from "../../src/contract/a2a.ts";
import { type ModelServer, modelServer } from "../model-server.ts";
import { a2aClient, atOnce, saying, wordsOf } from "./a2a-clients.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const config = (model: string): string => `
model: test/any
providers: { test: { type: openai-compatible, base_url: ${model} } }
a2a: { agents: [main, researcher], max_open: 3 }
agents:
  main: { default: true, guests: [other, flood] }
  researcher: { roles: [reader], guests: [other, flood] }
  hidden: {}
  caller: { tools: minimal, subagents: { agents: [researcher] } }
`;

let models: ModelServer;
let home: Home;
let daemon: RunningDaemon;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  models = await modelServer(() => "It is a heron.");
  home = new Home(config(models.url));
  daemon = await home.start();
  for (const scope of ["guest:other", "guest:stranger", "guest:flood", "agent:caller", "read"]) {
    const made = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) });
    tokens[scope] = ((await made.json()) as { token: string }).token;
  }
});

afterAll(async () => {
  await home.remove();
  await models.close();
});

function clientOf(scope: string, agent = "researcher"): Promise<Client> {
  return a2aClient(`${daemon.url}/a2a/${agent}`, tokens[scope]);
}

const STATE = TaskState;
const stateOf = (task: Task): TaskState | undefined => task.status?.state;
/** Until somebody plays something else, an answer never comes. */
const silence = (): void => models.play(() => ({ hangAfter: 0 }));
const herons = (): void => models.play(() => "It is a heron.");

describe("the official client", () => {
  test("finds an agent by its card and gets an answer", async () => {
    const client = await clientOf("guest:other");
    const card = await client.getAgentCard();
    expect(card).toMatchObject({ name: "researcher", capabilities: { streaming: true, pushNotifications: false } });
    const task = (await client.sendMessage(saying("What is it?"))) as Task;
    expect(stateOf(task)).toBe(STATE.TASK_STATE_COMPLETED);
    expect(wordsOf(task)).toBe("It is a heron.");
    const ours = (await (await daemon.fetch(`/api/tasks/${task.id}`)).json()) as Record<string, unknown>;
    expect(ours).toMatchObject({ id: task.id, kind: "api", agent: "researcher", from: "other", depth: 1, status: "completed" });
  });

  test("hears an answer while it is given", async () => {
    models.play(() => ({ text: ["It ", "is ", "a ", "swan."], chunkDelayMs: 100 }));
    const client = await clientOf("guest:other");
    const heard: StreamResponse[] = [];
    for await (const event of client.sendMessageStream(saying("And that?"))) heard.push(event);
    herons();
    expect(heard[0]?.payload?.$case).toBe("task");
    const last = heard.at(-1)?.payload;
    expect(last?.$case === "statusUpdate" && last.value.status?.state).toBe(STATE.TASK_STATE_COMPLETED);
    const pieces = heard.flatMap(({ payload }) => (payload?.$case === "artifactUpdate" ? [payload.value] : []));
    expect(pieces.length).toBeGreaterThan(2);
    // As a client puts it together.
    const whole = pieces.reduce((text, { append, artifact }) => {
      const content = artifact?.parts[0]?.content;
      return (append ? text : "") + (content?.$case === "text" ? content.value : "");
    }, "");
    expect(whole).toBe("It is a swan.");
  });

  test("asks for a task, listens to it again, and cancels it: nothing of it commits afterwards", async () => {
    silence();
    const client = await clientOf("guest:other");
    const opened = (await client.sendMessage(atOnce(saying("Think for a while.")))) as Task;
    expect([STATE.TASK_STATE_SUBMITTED, STATE.TASK_STATE_WORKING]).toContain(stateOf(opened));
    const heard: StreamResponse[] = [];
    const listening = (async () => {
      for await (const event of client.resubscribeTask({ tenant: "", id: opened.id })) heard.push(event);
    })();
    await expect.poll(() => heard.length).toBeGreaterThan(0);
    const cancelled = await client.cancelTask({ tenant: "", id: opened.id, metadata: undefined });
    expect(stateOf(cancelled)).toBe(STATE.TASK_STATE_CANCELED);
    await listening;
    const last = heard.at(-1)?.payload;
    expect(last?.$case === "statusUpdate" && last.value.status?.state).toBe(STATE.TASK_STATE_CANCELED);
    herons();
    expect(stateOf(await client.getTask({ tenant: "", id: opened.id }))).toBe(STATE.TASK_STATE_CANCELED);
    await expect(client.cancelTask({ tenant: "", id: opened.id, metadata: undefined })).rejects.toMatchObject({ envelopeCode: -32002 });
    await expect(client.resubscribeTask({ tenant: "", id: opened.id }).next()).rejects.toMatchObject({ envelopeCode: -32004 });
  });

  test("lists its own tasks, page by page and by context", async () => {
    const client = await clientOf("guest:other", "main");
    const first = (await client.sendMessage(saying("One."))) as Task;
    const second = (await client.sendMessage(saying("Two.", { contextId: first.contextId }))) as Task;
    await client.sendMessage(saying("Three."));
    const list = (more: object) =>
      client.listTasks({ tenant: "", contextId: "", status: 0, pageToken: "", statusTimestampAfter: undefined, ...more });
    const of = await list({ contextId: first.contextId });
    expect(of.tasks.map(({ id }) => id)).toEqual([second.id, first.id]);
    const page = await list({ pageSize: 2 });
    expect(page).toMatchObject({ totalSize: 3, pageSize: 2 });
    const rest = await list({ pageSize: 2, pageToken: page.nextPageToken });
    expect([...page.tasks, ...rest.tasks].map(({ id }) => id)).toContain(first.id);
    expect(rest.nextPageToken).toBe("");
    expect((await list({ status: STATE.TASK_STATE_FAILED })).tasks).toEqual([]);
    expect(
      (
        await (
          await clientOf("guest:flood", "main")
        ).listTasks({ tenant: "", contextId: "", status: 0, pageToken: "", statusTimestampAfter: undefined })
      ).tasks,
    ).toEqual([]);
  });

  test("what follows in a context knows what was said before", async () => {
    const client = await clientOf("guest:other", "main");
    const first = (await client.sendMessage(saying("My name is Ada."))) as Task;
    models.play(({ body }) => (JSON.stringify(body.messages).includes("My name is Ada.") ? "You are Ada." : "Who are you?"));
    expect(wordsOf((await client.sendMessage(saying("Who am I?", { contextId: first.contextId }))) as Task)).toBe("You are Ada.");
    expect(wordsOf((await client.sendMessage(saying("Who am I?"))) as Task)).toBe("Who are you?");
    // The same name of a context is another one's for somebody else.
    const stranger = await a2aClient(`${daemon.url}/a2a/main`, daemon.token);
    expect(wordsOf((await stranger.sendMessage(saying("Who am I?", { contextId: first.contextId }))) as Task)).toBe("Who are you?");
    herons();
  });

  test("a message that is sent again is the same task, and another with its id is refused", async () => {
    const client = await clientOf("guest:other");
    const message = saying("Once.");
    const before = models.requests.length;
    const [first, second] = (await Promise.all([client.sendMessage(message), client.sendMessage(message)])) as [Task, Task];
    expect(second.id).toBe(first.id);
    expect(((await client.sendMessage(message)) as Task).id).toBe(first.id);
    expect(models.requests.length - before).toBe(1);
    await expect(client.sendMessage(saying("Twice.", { messageId: message.message?.messageId as string }))).rejects.toMatchObject({
      envelopeCode: -32602,
    });
  });

  test("what the guide sends with curl is answered", async () => {
    const guide = readFileSync(new URL("../../docs/a2a.md", import.meta.url), "utf8");
    const [, body] = /curl [^']+-d '([^']+)'/.exec(guide) ?? [];
    const answer = await daemon.fetch("/a2a/researcher", { method: "POST", headers: { "a2a-version": "1.0" }, body: body as string });
    expect(await answer.json()).toMatchObject({ result: { task: { status: { state: "TASK_STATE_COMPLETED" } } } });
  });

  test("speaks the older version too", async () => {
    const body = {
      jsonrpc: "2.0",
      id: 7,
      method: "message/send",
      params: { message: { kind: "message", messageId: crypto.randomUUID(), role: "user", parts: [{ kind: "text", text: "Hello." }] } },
    };
    const answer = await daemon.fetch("/a2a/researcher", { method: "POST", body: JSON.stringify(body) });
    expect(await answer.json()).toMatchObject({
      id: 7,
      result: { kind: "task", status: { state: "completed" }, artifacts: [{ parts: [{ kind: "text", text: "It is a heron." }] }] },
    });
  });
});

describe("who may ask", () => {
  test("cards are there for published agents alone, and tell how to get in", async () => {
    const cardAt = (path: string) => fetch(`${daemon.url}${path}/.well-known/agent-card.json`);
    expect(await (await cardAt("")).json()).toMatchObject({ name: "main" });
    const card = await (await cardAt("/a2a/researcher")).json();
    expect(card).toMatchObject({
      name: "researcher",
      supportedInterfaces: [{ url: `${daemon.url}/a2a/researcher`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }, {}],
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    });
    for (const agent of ["hidden", "nobody"]) {
      expect((await cardAt(`/a2a/${agent}`)).status).toBe(404);
      const asked = await daemon.fetch(`/a2a/${agent}`, { method: "POST", body: "{}" });
      expect(asked.status).toBe(404);
    }
  });

  test("without a token, with a bad one, or not listed: refused", async () => {
    const ask = async (token?: string): Promise<number> => {
      const headers = { "a2a-version": "1.0", ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } });
      return (await fetch(`${daemon.url}/a2a/researcher`, { method: "POST", headers, body })).status;
    };
    expect(await ask()).toBe(401);
    expect(await ask("gh_nonsense")).toBe(401);
    expect(await ask(tokens["guest:stranger"])).toBe(403);
    expect(await ask(tokens.read)).toBe(403);
    expect(await ask(tokens["guest:other"])).toBe(200);
    const foreign = await daemon.fetch("/a2a/researcher", { method: "POST", body: "{}", headers: { origin: "http://evil.example" } });
    expect(foreign.status).toBe(403);
  });

  test("somebody else's task is none", async () => {
    const mine = (await (await clientOf("guest:other")).sendMessage(saying("Mine."))) as Task;
    const another = await clientOf("guest:flood");
    const elsewhere = await clientOf("guest:other", "main");
    for (const attempt of [
      () => another.getTask({ tenant: "", id: mine.id }),
      () => another.cancelTask({ tenant: "", id: mine.id, metadata: undefined }),
      () => another.resubscribeTask({ tenant: "", id: mine.id }).next(),
      () => another.sendMessage(saying("More.", { taskId: mine.id })),
      // Nor through another agent.
      () => elsewhere.getTask({ tenant: "", id: mine.id }),
    ])
      await expect(attempt()).rejects.toMatchObject({ envelopeCode: -32001 });
  });

  test("an agent's own program may ask whom that agent may, with its rights", async () => {
    models.play(({ body }) => JSON.stringify((body.tools ?? []).map((tool: { function: { name: string } }) => tool.function.name)));
    const task = (await (await clientOf("agent:caller")).sendMessage(saying("What may you do?"))) as Task;
    expect(wordsOf(task)).not.toContain("terminal");
    const own = (await (await clientOf("guest:other")).sendMessage(saying("What may you do?"))) as Task;
    expect(wordsOf(own)).toContain("terminal");
    herons();
    const refused = await fetch(`${daemon.url}/a2a/main`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens["agent:caller"]}`, "a2a-version": "1.0" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } }),
    });
    expect(refused.status).toBe(403);
  });
});

describe("what is claimed", () => {
  const withHops = (hops: unknown) => saying("Go on.", { metadata: { [HOPS_EXTENSION]: hops } });

  test("depth only ever rises by it, and the deepest is bounded", async () => {
    const client = await clientOf("guest:other");
    const depthOf = async (hops: unknown): Promise<unknown> => {
      const { id } = (await client.sendMessage(withHops(hops))) as Task;
      return ((await (await daemon.fetch(`/api/tasks/${id}`)).json()) as { depth: number }).depth;
    };
    expect(await depthOf({ houses: ["elsewhere"], depth: 0, max_depth: 100 })).toBe(1);
    expect(await depthOf({ houses: ["elsewhere"], depth: 2, max_depth: 100 })).toBe(2);
    const deeper = client.sendMessage(withHops({ houses: ["elsewhere"], depth: 3, max_depth: 100 }));
    await expect(deeper).rejects.toMatchObject({ envelopeCode: -32004, message: expect.stringContaining("depth 3") });
    await expect(client.sendMessage(withHops({ houses: [], depth: 2, max_depth: 1 }))).rejects.toMatchObject({ envelopeCode: -32004 });
    await expect(client.sendMessage(withHops({ houses: "x", depth: -1 }))).rejects.toMatchObject({ envelopeCode: -32602 });
  });

  test("no more of one caller's tasks are open at once than may be, however many come together", async () => {
    silence();
    const client = await clientOf("guest:flood");
    const asked = await Promise.allSettled(Array.from({ length: 12 }, (_, n) => client.sendMessage(atOnce(saying(`Number ${n}.`)))));
    const opened = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value as Task] : []));
    expect(opened).toHaveLength(3);
    for (const one of asked) if (one.status === "rejected") expect(one.reason.message).toContain("a2a.max_open");
    for (const { id } of opened) await client.cancelTask({ tenant: "", id, metadata: undefined });
    herons();
    expect(stateOf((await client.sendMessage(saying("Now?"))) as Task)).toBe(STATE.TASK_STATE_COMPLETED);
  });
});

test("malformed requests are answered as the protocol says", async () => {
  const ask = async (body: string): Promise<unknown> => {
    const answer = await daemon.fetch("/a2a/researcher", { method: "POST", headers: { "a2a-version": "1.0" }, body });
    return ((await answer.json()) as { error: { code: number | string } }).error.code;
  };
  const rpc = (method: string, params: unknown = {}): string => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  expect(await ask("{")).toBe("request.malformed");
  expect(await ask("{}")).toBe(-32602);
  expect(await ask(rpc("NoSuchMethod"))).toBe(-32601);
  expect(await ask(rpc("SendMessage"))).toBe(-32602);
  expect(await ask(rpc("SendMessage", { message: { messageId: "", role: "ROLE_USER", parts: [{ text: "x" }] } }))).toBe(-32602);
  expect(await ask(rpc("SendMessage", { message: { messageId: "m", role: "ROLE_USER", parts: [] } }))).toBe(-32602);
  expect(await ask(rpc("SendMessage", { message: { messageId: "m", role: "ROLE_USER", parts: [{ raw: "AAAA" }] } }))).toBe(-32005);
  expect(await ask(rpc("SendMessage", { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "x".repeat(100_001) }] } }))).toBe(
    -32602,
  );
  expect(await ask(rpc("GetTask", { id: "nothing" }))).toBe(-32001);
  expect(await ask(rpc("CreateTaskPushNotificationConfig", { taskId: "x", url: "http://x" }))).toBe(-32003);
  for (const path of ["/a2a/%E0%A4%A", "/a2a/%E0%A4%A/.well-known/agent-card.json"])
    expect((await daemon.fetch(path, path.endsWith("json") ? {} : { method: "POST", body: rpc("GetTask") })).status).toBe(404);
  const later = await daemon.fetch("/a2a/researcher", { method: "POST", headers: { "a2a-version": "9.0" }, body: rpc("GetTask") });
  expect(await later.json()).toMatchObject({ error: { code: -32009 } });
});

test("a task goes on after kill -9, under the same id", async () => {
  silence();
  const client = await clientOf("guest:other");
  const message = saying("Survive.");
  const { id } = (await client.sendMessage(atOnce(message))) as Task;
  await expect.poll(async () => stateOf(await client.getTask({ tenant: "", id }))).toBe(STATE.TASK_STATE_WORKING);
  await daemon.kill("SIGKILL");
  herons();
  daemon = await home.start();
  const again = await clientOf("guest:other");
  await expect.poll(async () => stateOf(await again.getTask({ tenant: "", id })), { timeout: 20_000 }).toBe(STATE.TASK_STATE_COMPLETED);
  expect(((await again.sendMessage(message)) as Task).id).toBe(id);
});
