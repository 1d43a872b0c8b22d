import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { retractEntryIn } from "../../src/acts/retract-entry.ts";
import { writeAndAckIn } from "../../src/acts/write-and-ack.ts";
import { newClaim } from "../../src/contract/claims.ts";
import { mailReceive, newMail, type ReceivedMail } from "../../src/contract/mail.ts";
import type { RetractionAnswer } from "../../src/contract/pools.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Claims } from "../../src/records/claims/claims.ts";
import { Mailbox } from "../../src/records/mailbox/mailbox.ts";
import type { Pools } from "../../src/records/pools/pools.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { agent, guest, poolsOn } from "./pool-callers.ts";

const newId = idSource(systemClock, systemRandom);
const ALICE = guest("alice");
const BOB = agent("bob", "run-1", "step-1");
const CAROL = agent("carol", "run-2");

describe.each(PLACES)("acts on pools and mail on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let pools: Pools;
  let mailbox: Mailbox;
  let claims: Claims;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    pools = await poolsOn(store, {
      shared: { readers: ["*"], writers: ["alice", "bob"] },
      private: { readers: ["carol"], writers: ["bob"] },
      latest: { writers: ["*"], keys: { report: { policy: "last_write" } } },
    });
    claims = new Claims(store, "node");
    mailbox = new Mailbox(store, newId, { perBox: 3 });
  });
  afterEach(() => place.remove());

  const retract = (version: number, by: Caller = OPERATOR): Promise<RetractionAnswer> =>
    store.transact(
      "retract",
      (tx) => retractEntryIn({ pools, mailbox }, tx, by, { pool: "shared", key: "fact", version }, "it was wrong"),
      "locked",
    );
  const received = (who: Caller): Promise<ReceivedMail[]> => mailbox.receive(who, mailReceive.parse({}));
  const fill = async (to: string): Promise<void> => {
    for (let index = 0; index < 3; index++) await mailbox.send(OPERATOR, newMail.parse({ to, type: "t", content: index }));
  };
  const value = async (pool: string, key: string): Promise<unknown> => (await pools.read(OPERATOR, pool, key))?.value;

  /** Bob reads Alice's fact and makes something of it in a pool Alice cannot see, which Carol reads. */
  const derive = async (): Promise<void> => {
    await pools.write(ALICE, "shared", [{ key: "fact", value: "the moon is cheese" }]);
    await pools.read(BOB, "shared", "fact");
    await pools.write(BOB, "private", [{ key: "plan", value: "bring crackers" }]);
    await pools.read(CAROL, "private", "plan");
  };

  test("D2 a retraction is told by mail to whoever wrote or read any of it, each about what it has seen", async () => {
    await derive();
    const answer = await retract(1);
    expect(answer.retracted).toHaveLength(2);
    const [[toAlice], [toBob], [toCarol]] = [await received(ALICE), await received(BOB), await received(CAROL)];
    const fact = { pool: "shared", key: "fact", version: 1 };
    const plan = { pool: "private", key: "plan", version: 1 };
    expect(toAlice).toMatchObject({
      from: "operator",
      type: "pool.retracted",
      content: { ...fact, reason: "it was wrong", versions: [fact] },
    });
    expect(toBob?.content).toMatchObject({ ...fact, versions: [plan, fact], rerun: [{ agent: "bob", run: "run-1", step: "step-1" }] });
    expect(toCarol?.content).toMatchObject({ ...plan, versions: [plan], rerun: [{ agent: "carol", run: "run-2" }] });
    expect(JSON.stringify(toAlice)).not.toContain("private");
    expect(JSON.stringify(toCarol)).not.toContain("fact");
  });

  test("D2 a version that several withdraw at once is withdrawn once and told once", async () => {
    await derive();
    const answers = await Promise.all([retract(1), retract(1), retract(1)]);
    expect(answers.flatMap(({ retracted }) => retracted)).toHaveLength(2);
    expect((await store.ledger.read(0, 100)).filter(({ type }) => type === "pool.retracted")).toHaveLength(2);
    expect(await received(ALICE)).toHaveLength(1);
  });

  test("nobody is told by mail of its own retraction", async () => {
    await pools.write(ALICE, "shared", [{ key: "fact", value: 1 }]);
    await retract(1, ALICE);
    expect(await received(ALICE)).toEqual([]);
  });

  test("a full mailbox blocks no retraction, and keeps no other from being told", async () => {
    await derive();
    await fill("bob");
    await retract(1);
    expect(await value("shared", "fact")).toBeUndefined();
    expect((await received(BOB)).map(({ type }) => type)).not.toContain("pool.retracted");
    expect(await received(CAROL)).toHaveLength(1);
  });

  test("D2 a refused retraction tells nobody", async () => {
    await derive();
    await expect(retract(1, CAROL)).rejects.toMatchObject({ code: "request.forbidden" });
    await expect(retract(9)).rejects.toMatchObject({ code: "request.not_found" });
    expect([await received(ALICE), await received(BOB), await received(CAROL)]).toEqual([[], [], []]);
  });

  test("M1 D2 writes and acks happen together", async () => {
    await mailbox.send(OPERATOR, newMail.parse({ to: "alice", type: "job", content: 1 }));
    const [mail] = (await received(ALICE)) as [ReceivedMail];
    const entries = await store.transact(
      "batch",
      (tx) => writeAndAckIn({ pools, mailbox, claims }, tx, ALICE, "shared", [{ key: "done", value: 1 }], { acks: [mail] }),
      "locked",
    );
    expect(entries).toMatchObject([{ key: "done", version: 1 }]);
    await place.elapse(60_000);
    expect(await received(ALICE)).toEqual([]);
  });

  test("M3 D2 a mail whose lease has ended takes the writes back, and a refused write leaves the mail unacked", async () => {
    await mailbox.send(OPERATOR, newMail.parse({ to: "alice", type: "job", content: 1 }));
    const [late] = (await received(ALICE)) as [ReceivedMail];
    await place.elapse(60_000);
    const [current] = (await received(ALICE)) as [ReceivedMail];
    const batch = (pool: string, ack: ReceivedMail[]) =>
      store.transact(
        "batch",
        (tx) => writeAndAckIn({ pools, mailbox, claims }, tx, ALICE, pool, [{ key: "done", value: 1 }], { acks: ack }),
        "locked",
      );
    await expect(batch("shared", [late])).rejects.toMatchObject({ code: "mail.stale" });
    expect(await value("shared", "done")).toBeUndefined();
    await expect(batch("private", [current])).rejects.toMatchObject({ code: "request.not_found" });
    expect((await mailbox.read(ALICE, current.id)).state).toBe("leased");
    await batch("shared", [current]);
    expect(await value("shared", "done")).toBe(1);
    expect((await mailbox.read(ALICE, current.id)).state).toBe("acked");
  });

  test("L2 D2 whoever has lost a claim writes nothing that hangs on it, whatever the key takes", async () => {
    const take = async (who: Caller) => (await claims.take(who, newClaim.parse({ resource: "report", ttl_ms: 5_000 }))).claim;
    const write = (who: Caller, ...held: { resource: string; fence: number }[]) =>
      store.transact(
        "batch",
        (tx) => writeAndAckIn({ pools, mailbox, claims }, tx, who, "latest", [{ key: "report", value: who.name }], { claims: held }),
        "locked",
      );
    const old = await take(ALICE);
    await write(ALICE, old);
    await place.elapse(5_001);
    await expect(write(ALICE, old)).rejects.toMatchObject({ code: "claim.lost" });
    const current = await take(BOB);
    await write(BOB, current);
    await expect(write(ALICE, old)).rejects.toMatchObject({ code: "claim.lost" });
    // Another's fence is no key.
    await expect(write(ALICE, current)).rejects.toMatchObject({ code: "claim.lost" });
    await expect(write(BOB, current, { resource: "elsewhere", fence: current.fence })).rejects.toMatchObject({ code: "claim.lost" });
    expect(await value("latest", "report")).toBe("bob");
  });
});
