import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { holdTurn, wakeHeldTurns } from "../../src/acts/hold-turn.ts";
import { restartTurns } from "../../src/acts/restart-turns.ts";
import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import type { Run } from "../../src/contract/wire.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { Failure } from "../../src/kernel/failure.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { openTurns } from "../../src/records/agents/agent-view.ts";
import { type RunInput, readRun, readRunInput } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { admitMessage } from "../admit-message.ts";
import { begin, commitAnswer } from "../commit-answer.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const newId = idSource(systemClock, systemRandom);
const PAUSED = new Failure("agent.paused", "agent a is paused");
const nobody = () => false;

describe.each(PLACES)("turns of an agent that may not answer, on %s", (_name, placeOf) => {
  let place: StorePlace;
  let store: Store;
  beforeEach(async () => {
    place = placeOf();
    store = await place.open();
  });
  afterEach(() => place.remove());

  let messages = 0;
  async function admit(agent: string, chat: string, to: Store = store): Promise<string> {
    const address = { platform: "t", account: "default", guild: null, chat, topic: null, chatType: "dm" as const, peer: chat, roles: [] };
    const decision = { agent, tier: "default" as const, binding: null, because: "", trace: [] };
    const message = { externalId: String(++messages), address, text: chat, decision, sessionKey: `agent:${agent}:${chat}` };
    return (await admitMessage(to, newId, message)).runId;
  }
  async function claim(node: Store = store): Promise<{ item: ClaimedWork; run: RunInput }[]> {
    const items = await node.queue.claim("n", 10, 60_000, [TURN_WORK]);
    return Promise.all(
      items.map(async (item) => ({ item, run: (await readRunInput(node.read, (item.payload as TurnPayload).runId)) as RunInput })),
    );
  }
  const hold = async (revision = 1): Promise<string[]> => {
    const claimed = await claim();
    for (const { item, run } of claimed) await holdTurn(store, noCrashPoints, item, run, revision, PAUSED, 1);
    return claimed.map(({ run }) => run.id);
  };
  const statusOf = async (id: string): Promise<Run["status"] | undefined> => (await readRun(store.read, id))?.status;

  test("wait, in their order, and are woken once", async () => {
    const [first, second, other] = [await admit("a", "x"), await admit("a", "x"), await admit("a", "y")];
    expect((await hold()).toSorted()).toEqual([first, other].toSorted());
    // The second of a conversation stays behind the first.
    expect(await claim()).toEqual([]);
    expect(await statusOf(first)).toBe("waiting");
    expect((await openTurns(store.read)).get("a")).toEqual({ running: 0, waiting: 3 });
    expect(await wakeHeldTurns(store, () => true)).toBe(0);
    expect(await wakeHeldTurns(store, nobody)).toBe(2);
    expect(await wakeHeldTurns(store, nobody)).toBe(0);
    expect(await statusOf(first)).toBe("queued");
    const woken = await claim();
    expect(woken.map(({ run }) => run.id)).toEqual([first, other]);
    // No attempt was lost by waiting.
    expect(woken.map(({ item }) => item.attempt)).toEqual([1, 1]);
    for (const { item, run } of woken) await commitAnswer(store, newId, item, run, { text: "ok", usage: null }, 1);
    expect((await claim()).map(({ run }) => run.id)).toEqual([second]);
  });

  test("are woken for the agents that may answer, and for no others", async () => {
    const [mine] = [await admit("a", "x"), await admit("b", "y")];
    await hold();
    await wakeHeldTurns(store, (agent) => agent === "b");
    expect((await claim()).map(({ run }) => run.id)).toEqual([mine]);
  });

  test("are not woken by a node that knows only an older config", async () => {
    await admit("a", "x");
    await hold(7);
    expect(await wakeHeldTurns(store, (_agent, revision) => revision > 6)).toBe(0);
    expect(await wakeHeldTurns(store, (_agent, revision) => revision > 7)).toBe(1);
  });

  test("are found again by a node that has just started, and held again where that is needed", async () => {
    const id = await admit("a", "x");
    await hold();
    const next = await place.open();
    expect(await wakeHeldTurns(next, nobody)).toBe(1);
    expect(await hold(2)).toEqual([id]);
    expect(await statusOf(id)).toBe("waiting");
    expect(await wakeHeldTurns(next, nobody)).toBe(1);
    expect((await claim(next)).map(({ run }) => run.id)).toEqual([id]);
  });

  test("that run again already are not said to wait by whoever wakes them late", async () => {
    const id = await admit("a", "x");
    await hold();
    // Another one has looked first: its time was up, it was taken, and it runs.
    await place.elapse(25 * 3_600_000);
    await store.queue.reap();
    const [again] = (await claim()) as [{ item: ClaimedWork; run: RunInput }];
    await begin(store, again.item, again.run);
    expect(await wakeHeldTurns(store, nobody)).toBe(1);
    expect(await statusOf(id)).toBe("running");
    expect((await openTurns(store.read)).get("a")).toEqual({ running: 1, waiting: 0 });
    await commitAnswer(store, newId, again.item, again.run, { text: "ok", usage: null }, 1);
    expect(await wakeHeldTurns(store, nobody)).toBe(0);
  });

  test("that somebody has stopped meanwhile are forgotten", async () => {
    await admit("a", "x");
    await hold();
    const [held] = await store.read.all<{ work_id: number }>`select work_id from held_turns`;
    await store.transact("stop", (tx) => store.queue.cancel(tx, held?.work_id as number), "locked");
    await wakeHeldTurns(store, () => true);
    expect(await store.read.all`select 1 from held_turns`).toEqual([]);
  });

  test("holding and waking at the same time loses none", async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, (_, index) => admit("a", `c${index % 10}`)));
    const done = new Set<string>();
    const seen: string[] = [];
    for (let round = 0; done.size < ids.length; round++) {
      if (round > 200) throw new Error(`only ${done.size} of ${ids.length} were answered`);
      const claimed = await claim();
      await Promise.all([
        ...claimed.map(async ({ item, run }, index) => {
          if ((index + Math.floor(round / 3)) % 2 === 0) return holdTurn(store, noCrashPoints, item, run, 1, PAUSED, 1);
          await commitAnswer(store, newId, item, run, { text: "ok", usage: null }, 1);
          done.add(run.id);
          seen.push(run.id);
        }),
        wakeHeldTurns(store, nobody),
      ]);
    }
    expect(seen.toSorted()).toEqual(ids.toSorted());
    // In each conversation in the order in which they came.
    for (let chat = 0; chat < 10; chat++) {
      const mine = ids.filter((_, index) => index % 10 === chat);
      expect(seen.filter((id) => mine.includes(id))).toEqual(await inOrderOfAdmission(mine));
    }
  });

  async function inOrderOfAdmission(ids: readonly string[]): Promise<string[]> {
    const rows = await store.read.all<{ subject: string }>`select subject from ledger where type = 'message.admitted' order by seq`;
    return rows.flatMap(({ subject }) => ids.filter((id) => subject.includes(id)));
  }

  test("a restart takes an agent's running turns from whoever runs them, and no other's", async () => {
    const [mine, others] = [await admit("a", "x"), await admit("b", "y")];
    const claimed = await claim();
    for (const { item, run } of claimed) await begin(store, item, run);
    const other = await place.open();
    expect(await restartTurns(other, "a", "operator")).toEqual([mine]);
    expect(await statusOf(mine)).toBe("queued");
    expect(await statusOf(others)).toBe("running");
    // The old owner can commit nothing more, and loses its claim at the next renewal.
    const old = claimed.find(({ run }) => run.id === mine) as { item: ClaimedWork; run: RunInput };
    const late = commitAnswer(store, newId, old.item, old.run, { text: "late", usage: null }, 1);
    await expect(late).rejects.toMatchObject({ code: "fence.stale" });
    expect(await store.queue.renew([old.item], 60_000)).toEqual(new Set());
    const [again] = await claim(other);
    expect(again).toMatchObject({ run: { id: mine }, item: { attempt: 1 } });
  });
});
