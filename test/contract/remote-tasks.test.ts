import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Peers } from "../../src/abilities/peers/peers.ts";
import { cancelTaskIn } from "../../src/acts/tasks/cancel-task.ts";
import { openTaskIn } from "../../src/acts/tasks/open-task.ts";
import { labelsOfTask } from "../../src/acts/tasks/task-labels.ts";
import type { TaskParts } from "../../src/acts/tasks/task-parts.ts";
import { REMOTE_WORK } from "../../src/acts/work-kinds.ts";
import { HOPS_EXTENSION } from "../../src/contract/a2a.ts";
import { doRemoteTask } from "../../src/drivers/dispatch/do-remote-task.ts";
import { Upkeep } from "../../src/drivers/dispatch/upkeep.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { houseId } from "../../src/records/tasks/house-id.ts";
import { type RemoteTask, readRemoteTask } from "../../src/records/tasks/remote-tasks.ts";
import { readTask, type StoredTask } from "../../src/records/tasks/task-rows.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { A2aPeer, type PeerOptions } from "../a2a-peer.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { quiet } from "../turn-parts.ts";
import { newId, TalkingHouse } from "./sessions-place.ts";

const LONG = 24 * 60 * 60_000;

describe.each(PLACES)("tasks for agents elsewhere on %s", (_name, place) => {
  let at: StorePlace;
  let store: Store;
  let house: TalkingHouse;
  let parts: TaskParts;
  let peer: A2aPeer;
  let diesAt: CrashPoint | null = null;

  beforeEach(async () => {
    at = place();
    store = await at.open();
    diesAt = null;
    await meet();
  });

  afterEach(async () => {
    await peer.stop();
    await at.remove();
  });

  async function meet(options: PeerOptions = {}, config: object = {}): Promise<void> {
    await peer?.stop();
    peer = await new A2aPeer(options).start();
    house = new TalkingHouse(store, {
      agents: { main: { subagents: { agents: ["peer:other"] } } },
      peers: { other: { url: peer.url, token: "our-token", give_up_after: "10m", ...config } },
    });
    parts = taskParts(store, newId, house.agents);
  }

  async function open(goal = "count herons", spec: StoredTask["spec"] = {}): Promise<string> {
    const opened = await store.transact(
      "open",
      (tx) => openTaskIn(parts, tx, { kind: "remote", agent: "peer:other", from: "main", parent: null, goal, spec, maxDepth: 2 }),
      "locked",
    );
    if ("refused" in opened) throw opened.refused;
    return opened.id;
  }

  const claim = async (owner = "node"): Promise<ClaimedWork | undefined> => (await store.queue.claim(owner, 1, 60_000, [REMOTE_WORK]))[0];

  async function take(item?: ClaimedWork, lost = new AbortController()): Promise<void> {
    const next = item ?? (await claim());
    if (!next) throw new Error("there is nothing to do for an agent elsewhere");
    const handler = doRemoteTask({
      ...parts,
      peers: new Peers(systemClock),
      random: systemRandom,
      redact: (text) => text.replaceAll("our-token", "[secret]"),
      reached: (point) => {
        if (point !== diesAt) return;
        lost.abort();
        throw new Error(`dead at ${point}`);
      },
    });
    await handler(next, lost.signal);
  }

  /** Looked at as often as it takes. */
  async function finish(id: string): Promise<void> {
    for (let round = 0; round < 50; round++) {
      await take();
      if ((await task(id)).endedAt !== null) return;
      await sleep(20);
      await later(60_000);
    }
    throw new Error("it does not end");
  }

  /** The node dies at this point; the row is found again by the next. */
  async function takeAndDieAt(point: CrashPoint): Promise<void> {
    const item = await claim("dead");
    diesAt = point;
    const lost = new AbortController();
    await take(item, lost);
    diesAt = null;
    expect(lost.signal.aborted).toBe(true);
    await store.transact("its lease ends", (tx) => tx.run`update work set lease_until = 0 where owner = 'dead'`);
    await store.queue.reap();
  }

  /** Whatever was parked is due. */
  async function later(ms = LONG): Promise<void> {
    await at.elapse(ms);
    await store.queue.reap();
  }

  const task = async (id: string): Promise<StoredTask> => (await readTask(store.read, id)) as StoredTask;
  const remote = async (id: string): Promise<RemoteTask> => (await readRemoteTask(store.read, id)) as RemoteTask;
  const sends = (): number => peer.calls.filter(({ method }) => method === "SendMessage").length;
  const isIdle = async (): Promise<boolean> =>
    (await store.read.get`select 1 from work where kind = ${REMOTE_WORK} and state <> 'dead'`) === undefined;

  test("is sent under our id with our token and what is known of its way, and its end is ours", async () => {
    const id = await open();
    await finish(id);
    expect(await task(id)).toMatchObject({ status: "completed", result: "done: count herons", error: null });
    const sent = peer.calls.find(({ method }) => method === "SendMessage");
    expect(sent).toMatchObject({ authorization: "Bearer our-token", params: { message: { messageId: id } } });
    expect(sent?.params.message.metadata[HOPS_EXTENSION]).toEqual({ houses: [await houseId(store, newId)], depth: 0, max_depth: 2 });
    expect(await isIdle()).toBe(true);
    // What comes from elsewhere is somebody else's word.
    expect(await labelsOfTask(store.read, await task(id))).toContain("external");
  });

  test("a peer that takes its time is looked at now and then, holding nothing", async () => {
    const done = Promise.withResolvers<void>();
    peer.react = () => ({ completes: "in the end", after: done.promise });
    const id = await open();
    await take();
    expect((await task(id)).endedAt).toBeNull();
    expect(await remote(id)).toMatchObject({ state: "sent", looks: 1 });
    expect(await claim()).toBeUndefined();
    done.resolve();
    await sleep(50);
    await later();
    await finish(id);
    expect(await task(id)).toMatchObject({ status: "completed", result: "in the end" });
    expect(sends()).toBe(1);
  });

  test("where the peer streams, its end is heard at once", async () => {
    await meet({ streaming: true });
    peer.react = () => ({ completes: "heard", afterMs: 300 });
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ status: "completed", result: "heard" });
    expect(peer.calls.map(({ method }) => method)).toContain("SubscribeToTask");
  });

  test.each([[true], [false]])("a peer that speaks 0.3 is understood (streaming: %s)", async (streaming) => {
    await meet({ legacy: true, streaming });
    peer.react = () => ({ completes: "in the old way", afterMs: 100 });
    const id = await open();
    await finish(id);
    expect(await task(id)).toMatchObject({ status: "completed", result: "in the old way" });
    expect(peer.calls.map(({ method }) => method)).toContain("message/send");
    expect(peer.executed.map(({ messageId }) => messageId)).toEqual([id]);
    if (streaming) return;
    peer.react = () => ({ never: true });
    const other = await open();
    await take();
    await store.transact("cancel", (tx) => cancelTaskIn(parts, tx, other, "operator"), "locked");
    for (let item = await claim(); item; item = await claim()) await take(item);
    expect(peer.cancelled).toHaveLength(1);
  });

  test.each([
    ["an answer without a task", { answer: "at once" }, { status: "completed", result: "at once" }],
    ["a failure", { fails: "no herons here" }, { status: "failed", error: { code: "task.peer_refused", message: "no herons here" } }],
    ["a refusal", { rejects: "not my field" }, { status: "failed", error: { code: "task.peer_refused", message: "not my field" } }],
    ["a question", { asks: "which herons?" }, { status: "failed", error: { message: expect.stringContaining("which herons?") } }],
  ] as const)("%s is told as what it is", async (_what, reaction, expected) => {
    peer.react = () => reaction;
    const id = await open();
    await finish(id);
    expect(await task(id)).toMatchObject(expected);
    expect(await isIdle()).toBe(true);
  });

  test("a secret that the peer sends back is not kept", async () => {
    peer.react = () => ({ completes: "your token is our-token" });
    const id = await open();
    await finish(id);
    expect((await task(id)).result).toBe("your token is [secret]");
  });

  test("killed after it was sent and before that was written: it is found at the peer, and not sent again", async () => {
    peer.react = () => ({ completes: "once", afterMs: 100 });
    const id = await open();
    await takeAndDieAt("remote.sent");
    expect(await remote(id)).toMatchObject({ state: "intended", remoteId: null });
    await sleep(150);
    await take();
    expect(await task(id)).toMatchObject({ status: "completed", result: "once" });
    expect(peer.executed).toHaveLength(1);
  });

  test("killed before it was sent: the peer knows nothing of it, and it is sent", async () => {
    const id = await open();
    await takeAndDieAt("remote.intended");
    expect(peer.executed).toHaveLength(0);
    await finish(id);
    expect(await task(id)).toMatchObject({ status: "completed" });
    expect(peer.executed.map(({ messageId }) => messageId)).toEqual([id]);
  });

  test("a connection that breaks with the answer on its way: looked for, and not sent again", async () => {
    let breaks = true;
    peer.intercept = (method, response) => {
      if (method !== "SendMessage done" || !breaks) return false;
      breaks = false;
      response.destroy();
      return true;
    };
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ endedAt: null, error: { code: "task.peer_lost" } });
    await later(60_000);
    await take();
    expect(await task(id)).toMatchObject({ status: "completed", error: null });
    expect(peer.executed).toHaveLength(1);
  });

  test("a peer that is away is a clear state; back again, the task is found and goes on", async () => {
    const done = Promise.withResolvers<void>();
    peer.react = () => ({ completes: "back", after: done.promise });
    const id = await open();
    await take();
    done.resolve();
    await sleep(50);
    await peer.stop();
    await later(60_000);
    await take();
    expect(await task(id)).toMatchObject({ status: "running", endedAt: null, error: { code: "task.peer_lost" } });
    await later(60_000);
    await take();
    const told = await store.read.all`select 1 from ledger where type = 'peer.lost'`;
    expect(told).toHaveLength(1);
    await peer.start();
    await later(60_000);
    await take();
    expect(await task(id)).toMatchObject({ status: "completed", result: "back", error: null });
    expect(sends()).toBe(1);
  });

  test("a peer that stays away: unknown where the task may have arrived, failed where nothing was ever sent", async () => {
    peer.react = () => ({ never: true });
    const sent = await open();
    await take();
    await peer.stop();
    const unsent = await open("never sent");
    // Each is lost at its first attempt, and given up once that has lasted for `give_up_after`.
    for (const _round of [1, 2]) {
      await later(11 * 60_000);
      for (let item = await claim(); item; item = await claim()) await take(item);
    }
    expect(await task(sent)).toMatchObject({ status: "unknown", error: { code: "task.peer_lost" } });
    expect(await task(unsent)).toMatchObject({ status: "failed", error: { code: "task.peer_lost" } });
    expect(await isIdle()).toBe(true);
  });

  test("a peer that has forgotten the task: nobody can be asked any more", async () => {
    peer.react = () => ({ never: true });
    const id = await open();
    await take();
    await peer.stop({ forgets: true });
    await peer.start();
    await later();
    await take();
    expect(await task(id)).toMatchObject({ status: "unknown", error: { code: "task.peer_lost" } });
    expect(sends()).toBe(1);
  });

  test("a token that is not accepted fails at once, and the message does not hold it", async () => {
    await meet({ token: "another" });
    const id = await open();
    await take();
    const { status, error } = await task(id);
    expect({ status, code: error?.code }).toEqual({ status: "failed", code: "task.peer_refused" });
    expect(error?.message).not.toContain("our-token");
  });

  test("a card that points elsewhere is refused: the token goes to the configured origin alone", async () => {
    const thief = await new A2aPeer().start();
    await meet({ cardUrl: thief.url });
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ status: "failed", error: { message: expect.stringContaining("points to") } });
    expect(thief.calls).toEqual([]);
    await thief.stop();
  });

  test("a redirect is no answer, and is not followed", async () => {
    const thief = await new A2aPeer().start();
    peer.intercept = (method, response) => {
      if (method !== "SendMessage") return false;
      response.writeHead(307, { location: thief.url }).end();
      return true;
    };
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ status: "failed", error: { code: "task.peer_refused" } });
    expect(thief.calls).toEqual([]);
    await thief.stop();
  });

  test("an answer without end is not read to its end", async () => {
    peer.intercept = (method, response) => {
      if (method !== "SendMessage") return false;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(Buffer.alloc(9 * 1024 * 1024, " "));
      return true;
    };
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ status: "failed", error: { message: expect.stringContaining("more than 8 MB") } });
  });

  test.each([
    ["a name with NUL", "a\0b"],
    ["a name without end", "x".repeat(2_000)],
    ["no name at all", ""],
  ])("a peer that calls the task by %s is refused, and asked once", async (_what, name) => {
    peer.lie = (method, result) => (method === "SendMessage" ? { task: { ...result.task, id: name } } : result);
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ status: "failed", error: { code: "task.peer_refused" } });
    expect([sends(), await isIdle()]).toEqual([1, true]);
  });

  test("a peer that tells of another task has not answered", async () => {
    const done = Promise.withResolvers<void>();
    peer.react = () => ({ completes: "mine", after: done.promise });
    const id = await open();
    await take();
    done.resolve();
    await sleep(50);
    peer.lie = (method, result) => (method === "GetTask" ? { ...result, id: "another" } : result);
    await later(60_000);
    await take();
    expect(await task(id)).toMatchObject({ status: "running", error: { code: "task.peer_lost" } });
    peer.lie = (_method, result) => result;
    await later(60_000);
    await take();
    expect(await task(id)).toMatchObject({ status: "completed", result: "mine" });
  });

  test("a peer that waits for somebody to sign in asks for more than anybody here can give", async () => {
    peer.react = () => ({ never: true });
    peer.lie = (_method, { task }) => ({ task: { ...task, status: { state: "TASK_STATE_AUTH_REQUIRED" } } });
    const id = await open();
    await take();
    expect(await task(id)).toMatchObject({ status: "failed", error: { message: expect.stringContaining("asks for more") } });
  });

  test("refused when it is sent again: nobody knows what became of the first", async () => {
    const id = await open();
    await takeAndDieAt("remote.sent");
    expect(peer.executed).toHaveLength(1);
    peer.intercept = (method, response) => {
      if (method === "card") return false;
      response.writeHead(401).end();
      return true;
    };
    await take();
    expect(await task(id)).toMatchObject({ status: "unknown", error: { code: "task.peer_refused" } });
  });

  test("data without end inside data is no answer", async () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    peer.intercept = (method, response) => {
      if (method !== "SendMessage") return false;
      const artifacts = `[{"artifactId":"a","parts":[{"data":${deep}}]}]`;
      const answer = `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":${artifacts}}}}`;
      response.writeHead(200, { "content-type": "application/json" }).end(answer);
      return true;
    };
    const id = await open();
    await take();
    expect((await task(id)).error?.code).toMatch(/^task\.peer_/);
  });

  test("cancelled here, the peer is told to stop, and that is written down", async () => {
    peer.react = () => ({ never: true });
    const id = await open();
    await take();
    await store.transact("cancel", (tx) => cancelTaskIn(parts, tx, id, "operator"), "locked");
    expect(await task(id)).toMatchObject({ status: "cancelled" });
    await take();
    expect(peer.cancelled).toHaveLength(1);
    expect(await remote(id)).toMatchObject({ cancel: "told" });
    expect(await isIdle()).toBe(true);
  });

  test("cancelled before anything was sent: nothing is", async () => {
    const id = await open();
    await store.transact("cancel", (tx) => cancelTaskIn(parts, tx, id, "operator"), "locked");
    expect(await isIdle()).toBe(true);
    expect(peer.calls).toEqual([]);
    expect(await task(id)).toMatchObject({ status: "cancelled" });
  });

  test("cancelled while the peer is away: it is told when it is back, and given up after a while", async () => {
    peer.react = () => ({ never: true });
    const [one, two] = [await open("one"), await open("two")];
    await take();
    await take();
    await peer.stop();
    for (const id of [one, two]) await store.transact("cancel", (tx) => cancelTaskIn(parts, tx, id, "operator"), "locked");
    await take();
    await peer.start();
    await later(60_000);
    for (let item = await claim(); item; item = await claim()) await take(item);
    expect(await remote(one)).toMatchObject({ cancel: "told" });
    expect(await remote(two)).toMatchObject({ cancel: "told" });
  });

  test("one conversation is one context there, and another is another", async () => {
    for (const [goal, conversation] of [
      ["first", "herons"],
      ["second", "herons"],
      ["third", "swans"],
    ] as const) {
      await open(goal, { conversation });
      await take();
    }
    const [first, second, third] = peer.executed.map(({ contextId }) => contextId);
    expect(second).toBe(first);
    expect(third).not.toBe(first);
  });

  test("what an earlier house has passed on is told further", async () => {
    const root = await store.transact(
      "open root",
      (tx) => openTaskIn(parts, tx, { kind: "api", agent: "main", from: "other", parent: null, goal: "g", spec: { hops: ["first"] } }),
      "locked",
    );
    const id = await open();
    await store.transact("below", (tx) => tx.run`update tasks set root_id = ${(root as { id: string }).id} where id = ${id}`);
    await take();
    const sent = peer.calls.find(({ method }) => method === "SendMessage");
    expect(sent?.params.message.metadata[HOPS_EXTENSION].houses).toEqual(["first", await houseId(store, newId)]);
  });

  test("a row whose every attempt died ends its task", async () => {
    const id = await open();
    await store.transact("it died often", (tx) => tx.run`update work set state = 'dead', attempts = 5 where kind = ${REMOTE_WORK}`);
    await new Upkeep(parts, "node", quiet).round();
    expect(await task(id)).toMatchObject({ status: "failed", error: { code: "internal.bug" } });
  });

  test("a peer that the config does not name is none", async () => {
    house.reconfigure({ agents: { main: {} } });
    await expect(open()).rejects.toMatchObject({ code: "agent.unknown" });
  });

  test("the house keeps its name, whoever asks first", async () => {
    const names = await Promise.all([houseId(store, newId), houseId(store, newId), houseId(store, newId)]);
    expect(new Set(names).size).toBe(1);
    const again = await at.open();
    expect(await houseId(again, newId)).toBe(names[0]);
  });
});
