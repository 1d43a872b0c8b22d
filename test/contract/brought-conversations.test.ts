import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { failTurn } from "../../src/acts/fail-turn.ts";
import { inboundMessage } from "../../src/contract/wire.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { Failure } from "../../src/kernel/failure.ts";
import { noteCall } from "../../src/records/journal/calls.ts";
import { readOpenCalls } from "../../src/records/journal/open-calls.ts";
import { readAsked, readOpenRuns, runsBeginning } from "../../src/records/sessions/open-runs.ts";
import { completeRun, type RunRequest, readRun } from "../../src/records/sessions/runs.ts";
import { readTranscript } from "../../src/records/sessions/transcript.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { TalkingHouse } from "./sessions-place.ts";

const request: RunRequest = {
  messages: [
    { role: "user", text: "first" },
    { role: "assistant", text: "second" },
    { role: "user", text: "/new is no command here" },
  ],
  instructions: "Be brief.",
  tools: [{ name: "get_weather", description: "", parameters: { type: "object" } }],
  settings: { temperature: 0.5, stop: ["END"] },
  hash: "h",
};

describe.each(PLACES)("a message that brings its conversation on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TalkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TalkingHouse(store);
  });
  afterEach(() => place.remove());

  const bring = (id: string, brought: RunRequest = request, sessionKey?: string) =>
    house.accept(
      inboundMessage.parse({
        id,
        platform: "openai",
        chat: `once-${id}`,
        peer: "operator",
        chat_type: "channel",
        agent: "main",
        text: "/new is no command here",
      }),
      OPERATOR,
      { request: brought, ...(sessionKey === undefined ? {} : { sessionKey }) },
    );

  test("is answered with what it brought, and leaves no conversation behind; nor does one that fails", async () => {
    const { runId, sessionKey } = await bring("1");
    const turn = await house.begin();
    expect(turn.run).toMatchObject({ id: runId, request });
    await house.commit(turn, "third");
    expect(await readRun(store.read, runId)).toMatchObject({ status: "completed", reply: { text: "third" } });
    await bring("2");
    const failing = await house.begin();
    await failTurn(taskParts(store), failing.item, failing.run, new Failure("model.refused", "no"), failing.cause);
    expect(await readTranscript(store.read, sessionKey as string, 1, 10)).toEqual([]);
    expect(await house.sessions.list(OPERATOR, { limit: 10 })).toMatchObject({ sessions: [] });
  });

  test("again with the same id is the same run", async () => {
    const first = await bring("1");
    expect(await bring("1", { ...request, hash: "other" })).toMatchObject({ runId: first.runId, duplicate: true });
    expect((await house.begin()).run.request?.hash).toBe("h");
  });

  test("without one of its own goes into the session that it names", async () => {
    const key = "agent:main:telegram:dm:7";
    await house.exchange("one", "two");
    expect(await bring("1", { ...request, messages: null }, key)).toMatchObject({ sessionKey: key });
    await house.commit(await house.begin(), "four");
    expect((await readTranscript(store.read, key, 1, 10)).map(({ text }) => text)).toEqual([
      "one",
      "two",
      "/new is no command here",
      "four",
    ]);
  });

  test("may be answered with calls", async () => {
    const { runId } = await bring("1");
    const calls = [{ id: "c1", tool: "get_weather", args: '{"city":"Oslo"}' }];
    await store.transact("complete", (tx) => completeRun(tx, runId, "", null, calls));
    expect((await readRun(store.read, runId))?.reply).toEqual({ text: "", calls });
  });

  test("what is not over can be looked at, those that run first, with the calls that are made now", async () => {
    const waits = await house.send("later", { peer: "1", chat: "1" });
    const [first] = [await bring("1")];
    const turn = await house.claimTurn();
    const running = turn.run.id;
    await store.transact("start", (tx) => tx.run`update runs set status = 'running', started_at = now_ms() where id = ${running}`);
    const call = { runId: running, step: 1, place: 0, callId: "c", tool: "terminal", args: '{"command":"ls"}', effect: "unsafe" } as const;
    await store.transact("note", (tx) => noteCall(tx, call, "intended", null));
    const { runs, total } = await readOpenRuns(store.read, undefined, 10);
    expect(total).toBe(2);
    expect(runs.map(({ id }) => id)).toEqual([running, running === first.runId ? waits.runId : first.runId]);
    expect(runs[0]).toMatchObject({ agent: "main", status: "running", startedAt: expect.any(Number) });
    expect(await readOpenRuns(store.read, "other", 10)).toEqual({ runs: [], total: 0 });
    expect(await readOpenCalls(store.read, [running])).toMatchObject([{ runId: running, tool: "terminal", state: "intended" }]);
    expect(await runsBeginning(store.read, running.slice(0, 19))).toContain(running);
    expect(await readAsked(store.read, first.runId)).toMatchObject({ from: "openai:operator", input: "/new is no command here" });
  });
});
