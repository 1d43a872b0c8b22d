import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { failTurn } from "../../src/acts/fail-turn.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { TURN_WORK } from "../../src/acts/work-kinds.ts";
import type { Run } from "../../src/contract/wire.ts";
import { Failure } from "../../src/kernel/failure.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import { readTranscript } from "../../src/records/sessions/transcript.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { TalkingHouse } from "./sessions-place.ts";

const ROUNDS = 25;
const KEY = "agent:main:telegram:dm:7";

describe.each(PLACES)("stopping on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TalkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TalkingHouse(store, { owners: ["telegram:7"] });
  });
  afterEach(() => place.remove());

  const run = async (id: string) => (await readRun(store.read, id)) as Run;
  const stop = (id: string, node = store) => node.transact("stop run", (tx) => stopRunIn(taskParts(node), tx, id, "operator"), "locked");

  test("/stop ends what runs and what waits; whatever the turn still does is void, and the conversation goes on", async () => {
    const ids = [await house.send("one"), await house.send("two"), await house.send("three")].map(({ runId }) => runId);
    const other = await house.send("somebody else's", { peer: "8", chat: "8" });
    const turn = await house.begin();
    const { stopped, over } = house.running.begin(turn.run.id);
    expect(await house.ask("/stop")).toBe("Stopped 3 messages.");
    expect(stopped.aborted).toBe(true);
    over();
    for (const id of ids) {
      expect(await run(id)).toMatchObject({ status: "failed", error: { code: "run.stopped", message: "stopped by telegram:7" } });
      expect((await house.events(id)).filter((type) => type === "turn.failed")).toHaveLength(1);
    }
    await expect(house.commit(turn, "too late")).rejects.toMatchObject({ code: "fence.stale" });
    await expect(failTurn(taskParts(store), turn.item, turn.run, new Failure("model.failed", "x"), 1)).rejects.toMatchObject({
      code: "fence.stale",
    });
    expect(await store.queue.renew([turn.item], 1_000)).toEqual(new Set());
    expect(await run(ids[0] as string)).toMatchObject({ status: "failed", reply: null, error: { code: "run.stopped" } });
    // What was stopped is not taken up again by the next turn.
    expect(await readTranscript(store.read, KEY, 1, 10)).toEqual([]);
    expect(await run(other.runId)).toMatchObject({ status: "queued" });
    await house.commit(await house.begin(), "for the other");
    await house.exchange("four", "fourth");
    expect((await readTranscript(store.read, KEY, 1, 10)).map(({ text }) => text)).toEqual(["four", "fourth"]);
    expect(await house.ask("/stop")).toBe("There was nothing to stop.");
  });

  test("one run of several is stopped, and the others keep their order", async () => {
    const [first, second, third] = [await house.send("one"), await house.send("two"), await house.send("three")].map(({ runId }) => runId);
    expect(await stop(second as string)).toMatchObject({
      id: second,
      status: "failed",
      error: { code: "run.stopped", message: "stopped by operator" },
    });
    expect((await house.begin()).run.id).toBe(first);
    expect(await stop(first as string)).toMatchObject({ status: "failed" });
    expect((await house.begin()).run.id).toBe(third);
  });

  test("what is over stays as it is", async () => {
    const { runId } = await house.exchange("one", "first");
    await expect(stop(runId)).rejects.toMatchObject({ code: "run.over", details: { status: "completed" } });
    const command = await house.send("/status");
    await expect(stop(command.runId)).rejects.toMatchObject({ code: "run.over" });
    const { runId: stopped } = await house.send("two");
    await stop(stopped);
    await expect(stop(stopped)).rejects.toMatchObject({ code: "run.over", details: { status: "failed" } });
    await expect(stop("x".repeat(20))).rejects.toMatchObject({ code: "request.not_found" });
    expect(await run(runId)).toMatchObject({ status: "completed", reply: { text: "first" } });
  });

  test.each(["commit", "fail", "retry"])(
    "a stop that races with the end of the turn (%s): exactly one of them has happened",
    async (how) => {
      const elsewhere = new TalkingHouse(await place.open(), { owners: ["telegram:7"] });
      let [stops, ends] = [0, 0];
      for (let round = 0; round < ROUNDS; round++) {
        const peer = `p${round}`;
        const { runId } = await house.send("hello", { peer, chat: peer });
        const turn = await house.begin();
        const end = async (): Promise<unknown> => {
          if (how === "commit") return house.commit(turn, "done");
          const code = how === "fail" ? "model.unknown" : "model.failed";
          return failTurn(taskParts(store), turn.item, turn.run, new Failure(code, "x"), turn.cause);
        };
        const byCommand = round % 2 === 0;
        const halt = async (): Promise<boolean> => {
          if (byCommand) return (await elsewhere.ask("/stop", { id: `stop${round}`, peer, chat: peer })) === "Stopped.";
          return stop(runId, elsewhere.store).then(
            () => true,
            (error: unknown) => {
              expect(error).toMatchObject({ code: "run.over" });
              return false;
            },
          );
        };
        const [ended, stopped] = await Promise.all([
          end().then(
            () => true,
            (error: unknown) => {
              expect(error).toMatchObject({ code: "fence.stale" });
              return false;
            },
          ),
          halt(),
        ]);
        const after = await run(runId);
        const types = await house.events(runId);
        const finals = types.filter((type) => type === "turn.completed" || type === "turn.failed");
        expect(finals).toHaveLength(1);
        // A turn that is to be tried again is not over: then the stop comes after it, and wins.
        if (how === "retry") expect(stopped).toBe(true);
        else expect(ended).toBe(!stopped);
        if (stopped) expect(after).toMatchObject({ status: "failed", error: { code: "run.stopped" }, reply: null });
        else expect(after.error?.code ?? null).toBe(how === "commit" ? null : "model.unknown");
        expect(await store.queue.claim("test", 1, 1_000, [TURN_WORK])).toEqual([]);
        stops += stopped ? 1 : 0;
        ends += ended ? 1 : 0;
      }
      expect(stops + ends).toBeGreaterThanOrEqual(ROUNDS);
    },
  );

  test("messages that come while others stop are either stopped or answered", async () => {
    const sent = await Promise.all(
      Array.from({ length: 30 }, (_, index) => (index % 5 === 4 ? house.send("/stop") : house.send(`m${index}`))),
    );
    let waiting = 0;
    for (const { runId } of sent) if ((await run(runId)).status === "queued") waiting++;
    for (let left = waiting; left > 0; left--) await house.commit(await house.begin(), "ok");
    for (const { runId } of sent) expect(["completed", "failed"]).toContain((await run(runId)).status);
    expect(await store.queue.claim("test", 1, 1_000, [TURN_WORK])).toEqual([]);
  });

  const both = { owners: ["telegram:7"], agents: { main: { default: true }, coder: {} } };

  test("/stop reaches also what was asked before the conversation was handed over", async () => {
    house.reconfigure(both);
    const [first, second] = [await house.send("to main"), await house.send("to main too")];
    expect(await house.ask("/agent coder")).toContain("main still answers the 2 messages from before.");
    const third = await house.send("to coder");
    expect(await house.ask("/stop")).toBe("Stopped 3 messages.");
    for (const { runId } of [first, second, third]) expect(await run(runId)).toMatchObject({ error: { code: "run.stopped" } });
    expect(await house.ask("/agent default")).toBe("From now on main answers here, as the rules say.");
  });

  test("/stop does not reach into a session that is shared with others, because a conversation of it was handed over", async () => {
    house.reconfigure({ ...both, agents: { main: { default: true, dm_scope: "main" }, coder: {} } });
    const { runId } = await house.send("of somebody else");
    await house.ask("/agent coder");
    const stranger = { peer: "9", chat: "9" };
    const { runId: own, sessionKey } = await house.send("of a stranger", stranger);
    expect(sessionKey).toBe("agent:coder:telegram:dm:9");
    expect(await house.ask("/stop", stranger)).toBe("Stopped.");
    expect(await run(own)).toMatchObject({ error: { code: "run.stopped" } });
    expect(await run(runId)).toMatchObject({ status: "queued" });
  });
});
