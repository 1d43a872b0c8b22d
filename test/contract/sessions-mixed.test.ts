import { describe, test } from "vitest";
import { failTurn } from "../../src/acts/fail-turn.ts";
import { restartTurns } from "../../src/acts/restart-turns.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import { Failure, isFailure } from "../../src/kernel/failure.ts";
import { type RunInput, readRunInput } from "../../src/records/sessions/runs.ts";
import { PLACES } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { TalkingHouse } from "./sessions-place.ts";

const PEERS = ["7", "8", "9"];
const SENDERS = 6;
const EACH = 25;
const TAKERS = 4;
/** Two sessions that are shared and one that is not, so that handovers cross: main's people go to coder, and coder's to main. */
const CONFIG = {
  owners: PEERS.map((peer) => `telegram:${peer}`),
  agents: { main: { default: true, dm_scope: "main" }, coder: { dm_scope: "main" }, third: {} },
  bindings: [{ agent: "coder", match: { platform: "telegram", peer: "8" } }],
};
const TEXTS = ["m", "m", "m", "m", "/new", "/stop", "/agent main", "/agent coder", "/agent third", "/agent default", "/model offline/demo"];

interface Said {
  readonly session_key: string;
  readonly position: number;
  readonly epoch: number;
  readonly role: string;
  readonly run_id: string;
}

interface RunRow {
  readonly id: string;
  readonly session_key: string;
  readonly epoch: number;
  readonly status: string;
  readonly reply: string | null;
}

describe.each(PLACES)("everything at once on %s", (_name, makePlace) => {
  test("messages, epochs, handovers, stops, restarts and turns on two nodes: every run ends once, and every epoch is whole", async ({
    expect,
    onTestFinished,
  }) => {
    const place = makePlace();
    onTestFinished(() => place.remove());
    const houses = [new TalkingHouse(await place.open(), CONFIG), new TalkingHouse(await place.open(), CONFIG)];
    const { store } = houses[0] as TalkingHouse;
    let sent = 0;
    let sending = true;

    const sender = async (number: number): Promise<void> => {
      const house = houses[number % 2] as TalkingHouse;
      const peer = PEERS[number % PEERS.length] as string;
      for (let each = 0; each < EACH; each++) {
        const text = TEXTS[(number * 7 + each * 3) % TEXTS.length] as string;
        const { runId } = await house.send(text, { id: `x${sent++}`, peer, chat: peer });
        if (each % 9 === 0)
          await store.transact("stop run", (tx) => stopRunIn(taskParts(store), tx, runId, "operator"), "locked").catch(unlessOver);
        if (each % 9 === 5) await restartTurns(store, "main", "operator");
      }
    };
    const taker = async (number: number): Promise<void> => {
      const house = houses[number % 2] as TalkingHouse;
      for (let turn = 0; ; turn++) {
        const [item] = await house.store.queue.claim(`taker${number}`, 1, 60_000, [TURN_WORK]);
        if (!item) {
          await house.store.queue.reap();
          if (!sending && !(await store.read.get`select 1 from work where kind = ${TURN_WORK}`)) return;
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        const run = (await readRunInput(house.store.read, (item.payload as TurnPayload).runId)) as RunInput;
        const over =
          turn % 7 === 3
            ? failTurn(taskParts(house.store), item, run, new Failure("model.unknown", "x"), 1)
            : house.commit({ item, run, cause: 1 }, "a");
        await over.catch(unlessStale);
      }
    };
    const takers = Promise.all(Array.from({ length: TAKERS }, (_, number) => taker(number)));
    await Promise.all(Array.from({ length: SENDERS }, (_, number) => sender(number)));
    sending = false;
    await takers;

    const runs = await store.read.all<RunRow>`select id, session_key, epoch, status, reply from runs`;
    expect(runs).toHaveLength(SENDERS * EACH);
    expect(runs.filter(({ status }) => status !== "completed" && status !== "failed")).toEqual([]);
    expect(await store.read.all`select run_id from outbox group by run_id having count(*) > 1`).toEqual([]);
    expect(await store.read.all`select lane from lanes where lane like 'session%'`).toEqual([]);

    const byId = new Map(runs.map((run) => [run.id, run]));
    const said = await store.read
      .all<Said>`select session_key, position, epoch, role, run_id from transcript order by session_key, position`;
    for (const [index, entry] of said.entries()) {
      const before = said[index - 1]?.session_key === entry.session_key ? said[index - 1] : undefined;
      expect(entry.position).toBe((before?.position ?? 0) + 1);
      expect(entry.epoch).toBeGreaterThanOrEqual(before?.epoch ?? 1);
      expect(byId.get(entry.run_id)).toMatchObject({ session_key: entry.session_key, epoch: entry.epoch });
    }
    const answers = said.filter(({ role }) => role === "assistant").map(({ run_id }) => run_id);
    expect(answers.sort()).toEqual(
      runs
        .filter(({ reply }) => reply === "a")
        .map(({ id }) => id)
        .sort(),
    );
    expect(answers.length).toBeGreaterThan(0);
  }, 120_000);
});

function unlessOver(error: unknown): void {
  if (!isFailure(error, "run.over")) throw error;
}

function unlessStale(error: unknown): void {
  if (!isFailure(error, "fence.stale")) throw error;
}
