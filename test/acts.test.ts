import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { beginTurn } from "../src/acts/begin-turn.ts";
import { failDeadTurn, failTurn } from "../src/acts/fail-turn.ts";
import { abandonDelivery, endDelivery } from "../src/acts/settle-delivery.ts";
import { DELIVERY_WORK, type DeliveryPayload, TURN_WORK } from "../src/acts/work-kinds.ts";
import { configSchema } from "../src/contract/config.ts";
import type { Admission } from "../src/contract/wire.ts";
import type { Address } from "../src/deciders/routing/address.ts";
import { Router } from "../src/deciders/routing/router.ts";
import { routingOfConfig } from "../src/deciders/routing/routing-of.ts";
import { sessionKey } from "../src/deciders/routing/session-key.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { Failure } from "../src/kernel/failure.ts";
import { idSource } from "../src/kernel/ids.ts";
import type { ModelUsage } from "../src/kernel/model.ts";
import { systemRandom } from "../src/kernel/random.ts";
import { readReply } from "../src/records/sessions/outbox.ts";
import { type RunInput, readRun, readRunInput } from "../src/records/sessions/runs.ts";
import { readTranscript } from "../src/records/sessions/transcript.ts";
import { openStore, type Store } from "../src/store/store.ts";
import type { ClaimedWork } from "../src/store/work-queue.ts";
import { admitMessage } from "./admit-message.ts";
import { commitAnswer } from "./commit-answer.ts";
import { taskParts } from "./task-parts.ts";

const newId = idSource(systemClock, systemRandom);
const folder = mkdtempSync(join(tmpdir(), "guildhall-acts-"));
let store: Store;
beforeAll(async () => {
  store = await openStore(`sqlite:${join(folder, "state.db")}`);
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

let messages = 0;

async function admit(peer: string, externalId = `m${messages++}`, unrouted: "default" | "refuse" = "default"): Promise<Admission> {
  const address: Address = { platform: "test", account: "default", guild: null, chat: peer, topic: null, chatType: "dm", peer, roles: [] };
  const decision = new Router(routingOfConfig(configSchema.parse({ unrouted }))).route(address);
  const key = decision.agent === null ? null : sessionKey(decision.agent, address);
  return admitMessage(store, newId, { externalId, address, text: "hello", decision, sessionKey: key });
}

async function claim(kind: string, ttlMs = 60_000): Promise<ClaimedWork> {
  const [item] = await store.queue.claim("test", 1, ttlMs, [kind]);
  return item as ClaimedWork;
}

const commit = (item: ClaimedWork, run: RunInput, text: string, usage: ModelUsage | null, causedBy: number): Promise<void> =>
  commitAnswer(store, newId, item, run, { text, usage }, causedBy);

const input = async (admission: Admission) => (await readRunInput(store.read, admission.runId)) as RunInput;
const eventsOf = async (runId: string) => (await store.ledger.read(0, 1_000, ["run", runId])).map((event) => event.type);

test("a message becomes a run and a row of work, and its reply an outbox row that is sent once", async () => {
  const admission = await admit("line");
  expect(admission).toEqual({ runId: expect.any(String), agent: "main", sessionKey: "agent:main:test:dm:line", duplicate: false });
  expect(await readRun(store.read, admission.runId)).toMatchObject({ status: "queued", reply: null, decision: { tier: "default" } });

  const item = await claim(TURN_WORK);
  const run = await input(admission);
  const { cause: started } = await beginTurn(store, item, run, "offline/demo", null);
  expect(await readRun(store.read, run.id)).toMatchObject({ status: "running" });

  const usage = { inputTokens: 1, outputTokens: 2 };
  await commit(item, run, "hi", usage, started);
  expect(await readRun(store.read, run.id)).toMatchObject({ status: "completed", reply: { text: "hi" }, usage, error: null });
  expect(await readTranscript(store.read, run.sessionKey, run.epoch, 10)).toMatchObject([
    { role: "user", text: "hello" },
    { role: "assistant", text: "hi" },
  ]);

  const delivery = await claim(DELIVERY_WORK);
  const payload = delivery.payload as DeliveryPayload;
  expect(await readReply(store.read, payload.replyId)).toMatchObject({ state: "pending", text: "hi" });
  await endDelivery(store, delivery, payload, { state: "sent", ids: ["1"], problem: null });
  expect(await readReply(store.read, payload.replyId)).toMatchObject({ state: "sent" });
  expect(await eventsOf(run.id)).toEqual([
    "message.admitted",
    "route.decided",
    "turn.started",
    "model.answered",
    "turn.completed",
    "reply.sent",
  ]);
  expect(await store.queue.counts()).toEqual({});
});

test("the run keeps the whole decision; the event of it says who, by which rule and why, and keeps no trace a second time", async () => {
  const address: Address = {
    platform: "x",
    account: "default",
    guild: null,
    chat: "1",
    topic: null,
    chatType: "group",
    peer: "7",
    roles: [],
  };
  const bindings = [
    { agent: "main", match: { platform: "x", chat: "1" } },
    { agent: "main", match: { platform: "x" } },
  ];
  const decision = new Router(routingOfConfig(configSchema.parse({ bindings }))).explain(address, 1);
  const key = sessionKey("main", address);
  const { runId } = await admitMessage(store, newId, {
    externalId: "told",
    address,
    text: "hello",
    decision,
    sessionKey: key,
  });
  expect((await readRun(store.read, runId))?.decision).toEqual(decision);
  const told = (await store.ledger.read(0, 1_000, ["run", runId])).find((event) => event.type === "route.decided");
  const { agent, tier, binding, because } = decision;
  expect(told?.data).toEqual({ agent, tier, binding, because, sessionKey: key });
  await store.queue.settleAll([await claim(TURN_WORK)]);
});

test("one causal thread leads from the reply back to the message", async () => {
  const [first] = await store.ledger.read(0, 1);
  const events = await store.ledger.read(0, 1_000, first?.subject);
  for (const [index, event] of events.entries()) expect(event.causedBy).toBe(events[index - 1]?.seq ?? null);
});

test("the same message again gets the first one's run and causes nothing", async () => {
  const first = await admit("twice", "same");
  const again = await admit("twice", "same");
  expect(again).toEqual({ ...first, duplicate: true });
  expect(await eventsOf(first.runId)).toEqual(["message.admitted", "route.decided"]);
  await store.queue.settleAll([await claim(TURN_WORK)]);
  expect(await claim(TURN_WORK)).toBeUndefined();
});

test("a message that nobody may answer is recorded and refused", async () => {
  const admission = await admit("stranger", undefined, "refuse");
  expect(admission).toMatchObject({ agent: null, sessionKey: null });
  expect(await readRun(store.read, admission.runId)).toMatchObject({ status: "refused", error: { code: "route.unrouted" } });
  expect(await eventsOf(admission.runId)).toEqual(["message.admitted", "route.decided", "message.refused"]);
  expect(await claim(TURN_WORK)).toBeUndefined();
});

test("an owner that was overtaken commits nothing at all", async () => {
  const admission = await admit("overtaken");
  const run = await input(admission);
  const stale = await claim(TURN_WORK);
  await store.queue.handBack([stale]);
  const current = await claim(TURN_WORK);
  await expect(commit(stale, run, "stale", null, 1)).rejects.toMatchObject({ code: "fence.stale" });
  await expect(failTurn(taskParts(store), stale, run, new Failure("model.failed", "x"), 1)).rejects.toMatchObject({ code: "fence.stale" });
  await expect(beginTurn(store, stale, run, "offline/demo", null)).rejects.toMatchObject({ code: "fence.stale" });
  expect(await readTranscript(store.read, run.sessionKey, run.epoch, 10)).toEqual([]);
  expect(await readRun(store.read, run.id)).toMatchObject({ status: "queued", reply: null });
  await store.queue.settleAll([current]);
});

test("a failed attempt is tried again as long as that can help, then the run fails and keeps what was asked", async () => {
  const admission = await admit("unlucky");
  const run = await input(admission);
  const item = await claim(TURN_WORK);
  expect(await failTurn(taskParts(store), item, run, new Failure("model.failed", "no answer"), 1)).toBe("retried");
  expect(await readRun(store.read, run.id)).toMatchObject({ status: "queued", error: null });
  await store.transact("hurry", (tx) => tx.run`update work set run_at = 0, attempts = max_attempts - 1`);
  await store.queue.reap();
  const last = await claim(TURN_WORK);
  expect(await failTurn(taskParts(store), last, run, new Failure("model.failed", "no answer"), 1)).toBe("failed");
  expect(await readRun(store.read, run.id)).toMatchObject({ status: "failed", error: { code: "model.failed", message: "no answer" } });
  expect(await readTranscript(store.read, run.sessionKey, run.epoch, 10)).toMatchObject([{ role: "user", text: "hello" }]);
  expect(await eventsOf(run.id)).toEqual(["message.admitted", "route.decided", "turn.retried", "turn.failed"]);
  expect(await store.queue.counts()).toEqual({});
});

test("a mistake that no repetition mends fails the run at once", async () => {
  const run = await input(await admit("mistaken"));
  expect(await failTurn(taskParts(store), await claim(TURN_WORK), run, new Failure("model.unknown", "no such provider"), 1)).toBe("failed");
});

test("a turn whose owners all disappeared becomes a failed run, once", async () => {
  const admission = await admit("cursed");
  const item = await claim(TURN_WORK);
  await store.transact("die", (tx) => tx.run`update work set lease_until = 0, attempts = max_attempts where id = ${item.id}`);
  expect(await store.queue.reap()).toMatchObject({ buried: 1 });
  const [dead] = await store.queue.dead(10);
  await failDeadTurn(taskParts(store), dead as NonNullable<typeof dead>);
  await failDeadTurn(taskParts(store), dead as NonNullable<typeof dead>);
  expect(await readRun(store.read, admission.runId)).toMatchObject({ status: "failed" });
  expect((await eventsOf(admission.runId)).filter((type) => type === "turn.failed")).toHaveLength(1);
  expect(await store.queue.counts()).toEqual({});
});

test("a delivery whose owners all disappeared leaves its reply unknown, not sent", async () => {
  const run = await input(await admit("silent"));
  await commit(await claim(TURN_WORK), run, "hi", null, 1);
  const delivery = await claim(DELIVERY_WORK);
  await store.transact("die", (tx) => tx.run`update work set lease_until = 0, attempts = max_attempts where id = ${delivery.id}`);
  await store.queue.reap();
  const [dead] = await store.queue.dead(10);
  await abandonDelivery(store, dead as NonNullable<typeof dead>);
  expect(await readReply(store.read, (delivery.payload as DeliveryPayload).replyId)).toMatchObject({ state: "unknown" });
  expect((await eventsOf(run.id)).at(-1)).toBe("reply.abandoned");
});
