import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ackOpenedMailIn, type OpenedMail, openMailIn, returnOpenedMailIn } from "../../src/acts/open-mail.ts";
import { sendMail } from "../../src/acts/send-mail.ts";
import { stopRunIn } from "../../src/acts/stop-runs.ts";
import { wakeForWaitingMail } from "../../src/acts/wake-agent.ts";
import { newMail } from "../../src/contract/mail.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { WAKES_PER_HOUR, WAKES_PER_ROOT } from "../../src/records/mailbox/wakes.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, guest } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { WorkingHouse, type WorkingTurn } from "./working-house.ts";

const HOUR = 3_600_000;

describe.each(PLACES)("mail that starts turns on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: WorkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new WorkingHouse(store, {
      ada: { roles: ["engineer"] },
      ben: { roles: ["engineer"] },
      old: { state: "archived", roles: ["retired"] },
      ill: { state: "paused", roles: ["resting"] },
      deaf: { tools: { profile: "full", deny: ["mail_read"] } },
    });
  });
  afterEach(() => place.remove());

  const wake = (to = "ada", from: Caller = OPERATOR, more: object = {}, at = house) =>
    sendMail(at, from, newMail.parse({ to, type: "note", content: "hello", wake: true, ...more }));
  const waiting = async (): Promise<{ id: string; agent: string; session_key: string; root_id: string | null }[]> =>
    store.read.all`select id, agent, session_key, root_id from runs where status = 'queued' order by created_at, id`;
  const open = async (turn: WorkingTurn) => store.transact("test", (tx) => openMailIn(house.mailbox, tx, turn.caller), "locked");
  const end = async (turn: WorkingTurn, opened: OpenedMail): Promise<void> => {
    await store.transact("test", (tx) => ackOpenedMailIn(house.mailbox, tx, turn.caller, opened.mail), "locked");
    await turn.commit();
  };
  const sweep = () => wakeForWaitingMail(house);

  test("starts a turn of the agent, in a conversation of its own, with what caused it", async () => {
    const { id, woken } = await wake();
    expect(woken).toBe("started");
    const [run] = await waiting();
    expect(run).toMatchObject({ agent: "ada", session_key: "agent:ada:internal:dm:mail", root_id: null });
    const turn = await house.take();
    expect(turn.run).toMatchObject({ id: run?.id, input: "New mail.", address: { platform: "internal", chat: "mail" } });
    expect((await open(turn)).mail).toMatchObject([{ id }]);
    expect((await readRun(store.read, turn.run.id))?.decision).toMatchObject({ because: "mail from operator to ada asks for it" });
    const events = await store.ledger.read(0, 100, ["run", turn.run.id]);
    expect(events.map(({ type }) => type)).toEqual(["message.admitted", "route.decided", "turn.started"]);
    await turn.commit();
    expect((await readRun(store.read, turn.run.id))?.status).toBe("completed");
  });

  test("plain mail starts none, and mail to a guest, an archived agent, one that may not read it or an unknown role wakes nobody", async () => {
    expect(await wake("ada", OPERATOR, { wake: false })).not.toHaveProperty("woken");
    for (const to of ["eve", "deaf", "old", "role:retired", "role:nobody", "operator"]) expect((await wake(to)).woken).toBe("nobody");
    expect(await waiting()).toEqual([]);
    expect(await sweep()).toBe(0);
  });

  test("many at once start one turn, on two nodes together", async () => {
    const other = new WorkingHouse(await place.open(), { ada: {}, ben: {} });
    const all = await Promise.all(Array.from({ length: 20 }, (_, index) => wake("ada", guest(`g${index}`), {}, index % 2 ? house : other)));
    expect(all.map(({ woken }) => woken).toSorted()).toEqual(["started", ...Array(19).fill("waiting")]);
    expect(await waiting()).toHaveLength(1);
  });

  test("what comes after a turn has opened its mail starts another one, which waits for the first", async () => {
    await wake();
    const turn = await house.take();
    expect((await wake()).woken).toBe("waiting");
    const opened = await open(turn);
    expect(opened.mail).toHaveLength(2);
    expect((await wake()).woken).toBe("started");
    expect((await wake()).woken).toBe("waiting");
    await expect(house.take()).rejects.toThrow("no turn");
    await end(turn, opened);
    expect((await open(await house.take())).mail).toHaveLength(2);
  });

  test("no mail is missed by a turn that opens its mail at the same moment", async () => {
    for (let round = 0; round < 15; round++) {
      await wake("ada", OPERATOR, { content: `a${round}`, conversation: `a${round}` });
      const turn = await house.take();
      const [opened, { woken }] = await Promise.all([
        open(turn),
        wake("ada", OPERATOR, { content: `b${round}`, conversation: `b${round}` }),
      ]);
      const seen = opened.text?.includes(`b${round}`);
      // Either this turn has it, or another one is coming for it.
      expect([seen, woken]).toEqual(seen ? [true, expect.stringMatching(/waiting|started/)] : [false, "started"]);
      await end(turn, opened);
      while ((await waiting()).length > 0) {
        const next = await house.take();
        await end(next, await open(next));
      }
      expect(await house.mailbox.counts("ada")).toMatchObject({ pending: 0, leased: 0 });
    }
  });

  test("of a role one agent is woken, another the next time, and none while one of them waits", async () => {
    expect((await wake("role:engineer")).woken).toBe("started");
    expect((await wake("role:engineer")).woken).toBe("waiting");
    const first = await house.take();
    const opened = await open(first);
    expect(opened.mail).toHaveLength(2);
    await end(first, opened);
    await place.elapse(10);
    expect((await wake("role:engineer")).woken).toBe("started");
    const second = await house.take();
    expect([first.run.agent, second.run.agent]).toEqual(["ada", "ben"]);
    expect((await open(second)).mail).toHaveLength(1);
  });

  test("an agent that pauses is woken, and its turn waits for it; of a role those are preferred that do not", async () => {
    expect((await wake("ill")).woken).toBe("started");
    expect(await waiting()).toMatchObject([{ agent: "ill" }]);
    house.agents.apply(new WorkingHouse(store, { ada: { state: "paused", roles: ["r"] }, ben: { roles: ["r"] } }).agents.current);
    await wake("role:r");
    expect((await waiting()).map((run) => run.agent).toSorted()).toEqual(["ben", "ill"]);
  });

  test("the turn is started with the mail or not at all", async () => {
    const small = new WorkingHouse(store, { ada: {}, ben: {} }, { perBox: 1 });
    await wake("ada", OPERATOR, { wake: false }, small);
    await expect(wake("ada", OPERATOR, {}, small)).rejects.toMatchObject({ code: "mail.full" });
    await expect(
      sendMail(house, OPERATOR, newMail.parse({ to: "ben", type: "t", content: 1, wake: true }), async () => {
        throw new Error("not recorded");
      }),
    ).rejects.toThrow("not recorded");
    expect(await waiting()).toEqual([]);
    expect(await house.mailbox.counts("ben")).toMatchObject({ sent: 0 });
  });

  test("ASI08 two agents that wake each other come to an end, and so does all that goes back to one message", async () => {
    let turn = await house.turnOf("ada");
    const root = turn.run.id;
    let opened: OpenedMail = { text: null, mail: [], from: [], labels: [] };
    let turns = 0;
    let woken = "started";
    while (turns < WAKES_PER_ROOT + 10) {
      ({ woken } = await turn.call("mail_send", { to: turn.run.agent === "ada" ? "ben" : "ada", content: "your turn", wake: true }));
      await end(turn, opened);
      if (woken !== "started") break;
      turns++;
      turn = await house.take();
      opened = await open(turn);
      expect(opened.mail).toHaveLength(1);
      // By the hour alone it could go on for ever.
      await place.elapse(HOUR / 10);
    }
    expect([woken, turns]).toEqual(["limited", WAKES_PER_ROOT]);
    expect(await store.read.get`select count(*) as count from runs where root_id = ${root}`).toEqual({ count: WAKES_PER_ROOT });
    await place.elapse(2 * HOUR);
    expect(await sweep()).toBe(0);
    // Another message is another beginning.
    expect((await wake()).woken).toBe("started");
  });

  test("ASI08 an agent is woken so many times in an hour, whoever asks, and then again later", async () => {
    const results: (string | undefined)[] = [];
    for (let index = 0; index < WAKES_PER_HOUR; index++) {
      results.push((await wake("ada", guest(`g${index % 7}`))).woken);
      const turn = await house.take();
      await end(turn, await open(turn));
    }
    expect(new Set(results)).toEqual(new Set(["started"]));
    expect((await wake("ada", guest("eve"))).woken).toBe("limited");
    expect((await wake("ben", guest("eve"))).woken).toBe("started");
    expect(await sweep()).toBe(0);
    await place.elapse(HOUR);
    // Nothing was lost: what has waited starts its turn when it may.
    expect(await sweep()).toBe(1);
    expect((await waiting()).map((run) => run.agent).toSorted()).toEqual(["ada", "ben"]);
  });

  test("mail whose turn has failed wakes its agent again; after a stop it only opens the next turn", async () => {
    await wake();
    const failed = await house.take();
    const opened = await open(failed);
    await store.transact("test", (tx) => returnOpenedMailIn(house.mailbox, tx, failed.caller, opened.mail, "failed"), "locked");
    await failed.commit();
    expect(await sweep()).toBe(1);
    expect(await sweep()).toBe(0);
    const stopped = await house.take();
    const again = await open(stopped);
    expect(again.mail).toHaveLength(1);
    await store.transact(
      "test",
      async (tx) => {
        await stopRunIn(taskParts(store), tx, stopped.run.id, "operator");
        await returnOpenedMailIn(house.mailbox, tx, stopped.caller, again.mail, "stopped");
      },
      "locked",
    );
    expect(await sweep()).toBe(0);
    expect((await open(await house.turnOf("ada"))).mail).toHaveLength(1);
  });

  test("a turn that was stopped before it opened its mail is no reason not to start another", async () => {
    await wake();
    const [run] = await waiting();
    await store.transact("test", (tx) => stopRunIn(taskParts(store), tx, run?.id as string, "operator"), "locked");
    expect((await wake()).woken).toBe("started");
  });

  test("mail for an agent that comes later wakes it then", async () => {
    expect((await wake("new")).woken).toBe("nobody");
    house.agents.apply(new WorkingHouse(store, { new: {} }).agents.current);
    expect(await sweep()).toBe(1);
    expect(await waiting()).toMatchObject([{ agent: "new" }]);
  });

  test("mail of a turn goes back to the message that the turn goes back to", async () => {
    const turn = await house.turnOf("ben");
    await turn.call("mail_send", { to: "ada", content: 1, wake: true });
    expect(await waiting()).toMatchObject([{ agent: "ada", root_id: turn.run.id }]);
    const next = await house.take();
    await open(next);
    await next.call("mail_send", { to: "ben", content: 2, wake: true });
    expect(await waiting()).toMatchObject([{ agent: "ben", root_id: turn.run.id }]);
  });

  test("sent by an agent outside a turn it wakes as well", async () => {
    expect((await wake("ada", agent("ben"))).woken).toBe("started");
  });
});
