import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type MailDraft, type MailReceiveRequest, mailQuery, mailReceive, newMail } from "../../src/contract/mail.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Mailbox, type MailLimits } from "../../src/records/mailbox/mailbox.ts";
import { restoreBackup } from "../../src/store/restore-backup.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, guest, reader } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const VISIBLE = 30_000;
const DAY = 86_400_000;
const newId = idSource(systemClock, systemRandom);
const alice = guest("alice");
const bob = guest("bob");

describe.each(PLACES)("mail on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let mailbox: Mailbox;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    mailbox = new Mailbox(store, newId);
  });
  afterEach(() => place.remove());

  const send = (content: unknown = "hello", more: Partial<MailDraft> = {}, from: Caller = alice, box = mailbox): Promise<string> =>
    box.send(from, newMail.parse({ to: "bob", type: "note", content, ...more }));
  const receive = (who: Caller = bob, more: MailReceiveRequest = {}, box = mailbox) =>
    box.receive(who, mailReceive.parse({ visibility_ms: VISIBLE, ...more }));
  const one = async (who: Caller = bob) => {
    const [mail] = await receive(who, { max: 1 });
    if (!mail) throw new Error("no mail");
    return mail;
  };
  const contents = async (...args: Parameters<typeof receive>) => (await receive(...args)).map(({ content }) => content);
  const ackAll = async (who: Caller, mail: Awaited<ReturnType<typeof receive>>, box = mailbox): Promise<void> => {
    for (const { id, fence } of mail) await box.ack(who, id, fence);
  };
  const second = async (limits: Partial<MailLimits> = {}): Promise<Mailbox> => new Mailbox(await place.open(), newId, limits);
  const events = async () => (await store.ledger.read(0, 5_000)).map(({ type }) => type);
  const stale = { code: "mail.stale" };

  test("what is sent is received, with sender, fence and attempt set by the gateway", async () => {
    const id = await send({ a: [1, null, "ü\0"] }, { priority: "urgent", conversation: "c", readers: ["carol"], wake: true });
    expect(await receive()).toEqual([
      {
        id,
        from: "alice",
        to: "bob",
        type: "note",
        content: { a: [1, null, "ü\0"] },
        priority: "urgent",
        conversation: "c",
        readers: ["carol"],
        wake: true,
        label: "external",
        fence: expect.any(Number),
        attempt: 1,
        at: expect.any(Number),
        expiresAt: expect.any(Number),
        leaseUntil: expect.any(Number),
      },
    ]);
    expect(await receive()).toEqual([]);
  });

  test("M1 unacked mail comes again with the same id and a larger fence, acked mail never", async () => {
    const id = await send();
    const first = await one();
    await place.elapse(VISIBLE + 1);
    const again = await one();
    expect([again.id, again.attempt]).toEqual([id, 2]);
    expect(again.fence).toBeGreaterThan(first.fence);
    await mailbox.ack(bob, id, again.fence);
    await place.elapse(10 * VISIBLE);
    await mailbox.sweep();
    expect(await receive()).toEqual([]);
    expect(await events()).toEqual(["mail.sent", "mail.received", "mail.returned", "mail.received", "mail.acked"]);
  });

  test("M1 one mail has one receiver at a time, however many ask at once on two nodes", async () => {
    const other = await second();
    for (let index = 0; index < 20; index++) await send(index, { to: "role:crew", conversation: `c${index}` });
    const crew = ["x", "y", "z"].map((name) => agent(name, "crew"));
    const got = await Promise.all(
      Array.from({ length: 12 }, (_, index) => receive(crew[index % 3], { max: 5 }, index % 2 ? mailbox : other)),
    );
    const ids = got.flat().map(({ id }) => id);
    expect(ids).toHaveLength(20);
    expect(new Set(ids).size).toBe(20);
  });

  test("M2 mail of one sender and conversation is in order, also when it is handed out one by one", async () => {
    for (let index = 0; index < 5; index++) await send(index);
    expect(await contents(bob, { max: 2 })).toEqual([0, 1]);
    // The first two are still with somebody: nothing of the conversation may overtake them.
    expect(await contents()).toEqual([]);
    await place.elapse(VISIBLE + 1);
    const again = await receive();
    expect(again.map(({ content, attempt }) => [content, attempt])).toEqual([0, 1, 2, 3, 4].map((index) => [index, index < 2 ? 2 : 1]));
  });

  test("M2 a mail that waits to come again holds back those behind it, and nobody else's", async () => {
    await send("first");
    await send("second");
    await send("other conversation", { conversation: "c" });
    await send("other sender", {}, guest("carol"));
    const first = await one();
    await mailbox.nack(bob, first.id, first.fence, 60_000);
    expect(await contents()).toEqual(["other conversation", "other sender"]);
    await place.elapse(60_001);
    expect(await contents()).toEqual(["first", "second", "other conversation", "other sender"]);
  });

  test("M2 an earlier one that came back is handed out although a later one is with somebody", async () => {
    await send(1);
    await send(2);
    await send(3);
    const [first] = await receive(bob, { max: 2 });
    await mailbox.nack(bob, first?.id as string, first?.fence as number, 0);
    expect(await contents()).toEqual([1]);
  });

  test("M2 receivers of one role on two nodes never overtake one another in a conversation", async () => {
    const other = await second({ perSender: 1_000 });
    for (let index = 0; index < 40; index++) await send(index, { to: "role:crew", conversation: `c${index % 4}` }, alice, other);
    const seen = new Map<string, number[]>();
    const work = async (who: Caller, box: Mailbox): Promise<void> => {
      for (let idle = 0; idle < 20; ) {
        const got = await receive(who, { max: 3 }, box);
        idle = got.length === 0 ? idle + 1 : 0;
        if (got.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        for (const mail of got)
          seen.set(mail.conversation as string, [...(seen.get(mail.conversation as string) ?? []), mail.content as number]);
        await ackAll(who, got, box);
      }
    };
    await Promise.all(["x", "y", "z"].map((name, index) => work(agent(name, "crew"), index % 2 ? mailbox : other)));
    for (const [conversation, order] of seen) expect([conversation, order]).toEqual([conversation, [...order].sort((a, b) => a - b)]);
    expect([...seen.values()].flat()).toHaveLength(40);
  });

  test("urgent mail is handed out first", async () => {
    await send("normal");
    await send("urgent", { priority: "urgent" });
    expect((await mailbox.unread(bob, 10, true)).map(({ content }) => content)).toEqual(["urgent"]);
    expect((await mailbox.unread(bob, 10)).map(({ content }) => content)).toEqual(["urgent", "normal"]);
    expect(await contents()).toEqual(["urgent", "normal"]);
    expect(await mailbox.unread(bob, 10)).toEqual([]);
  });

  test("M3 an ack or nack with a stale fence is refused, before and after somebody else has it", async () => {
    await send();
    const first = await one();
    await place.elapse(VISIBLE + 1);
    await expect(mailbox.ack(bob, first.id, first.fence)).rejects.toMatchObject(stale);
    const again = await one();
    await expect(mailbox.ack(bob, first.id, first.fence)).rejects.toMatchObject(stale);
    await expect(mailbox.nack(bob, first.id, first.fence, 0)).rejects.toMatchObject(stale);
    await mailbox.ack(bob, again.id, again.fence);
    await expect(mailbox.ack(bob, again.id, again.fence)).rejects.toMatchObject({ ...stale, details: { state: "acked" } });
  });

  test("M1 M3 after a restore mail that was with somebody comes again, and the old fence is stale", async () => {
    const folder = mkdtempSync(join(tmpdir(), "guildhall-mail-"));
    const target = makePlace();
    try {
      await send();
      const { id, fence } = await one();
      await store.backup(join(folder, "backup.gz"));
      await restoreBackup(target.location, join(folder, "backup.gz"));
      const restored = new Mailbox(await target.open(), newId);
      await expect(restored.ack(bob, id, fence)).rejects.toMatchObject(stale);
      const [again] = await receive(bob, {}, restored);
      expect([again?.id, again?.attempt]).toEqual([id, 2]);
      expect(again?.fence).toBeGreaterThan(fence);
    } finally {
      await target.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("M3 the ack and its effects happen together or not at all", async () => {
    await send();
    const { id, fence } = await one();
    const effect = (withFence: number) =>
      store.transact(
        "effect",
        async (tx) => {
          await store.ledger.append(tx, { type: "daemon.started", actor: "effect", subject: ["x"] });
          await mailbox.ackIn(tx, bob, id, withFence);
        },
        "locked",
      );
    await expect(effect(fence - 1)).rejects.toMatchObject(stale);
    expect(await events()).not.toContain("daemon.started");
    await effect(fence);
    await expect(effect(fence)).rejects.toMatchObject(stale);
    expect((await events()).filter((type) => type === "daemon.started")).toHaveLength(1);
  });

  test("M3 an ack races with the end of its lease: it counts, or the mail comes again, never both", async () => {
    const other = await second();
    for (let round = 0; round < 25; round++) {
      const to = `racer-${round}`;
      const who = guest(to);
      await send(round, { to });
      const [mail] = await receive(who, { visibility_ms: 30 });
      await new Promise((resolve) => setTimeout(resolve, 25 + (round % 10)));
      const [acked, again] = await Promise.allSettled([
        mailbox.ack(who, mail?.id as string, mail?.fence as number),
        receive(who, {}, other),
      ]);
      const came = again.status === "fulfilled" ? again.value.length : 0;
      expect([acked.status, came]).toSatisfy(([status, count]) => (status === "fulfilled" ? count === 0 : true));
      expect((await mailbox.counts(to)).acked).toBe(acked.status === "fulfilled" ? 1 : 0);
    }
  });

  test("M4 sent = acked + pending + dead + expired, whatever becomes of them", async () => {
    for (let index = 0; index < 6; index++) await send(index, { conversation: `c${index}`, ...(index === 5 ? { expires_ms: 1_000 } : {}) });
    await ackAll(bob, await receive(bob, { max: 2 }));
    await place.elapse(1_001);
    await mailbox.sweep();
    for (let attempt = 0; attempt < 5; attempt++) {
      const { id, fence } = await one();
      await mailbox.nack(bob, id, fence, 0);
    }
    await one();
    expect(await mailbox.counts("bob")).toEqual({ sent: 6, acked: 2, expired: 1, dead: 1, leased: 1, pending: 1 });
    expect((await events()).filter((type) => type === "mail.died" || type === "mail.expired").sort()).toEqual([
      "mail.died",
      "mail.expired",
    ]);
  });

  test("a mail that is never acked is dead after five receipts, and lets those behind it pass", async () => {
    const poison = await send("poison");
    await send("next");
    for (let attempt = 1; attempt <= 5; attempt++) {
      expect((await one()).attempt).toBe(attempt);
      await place.elapse(VISIBLE + 1);
    }
    expect(await contents()).toEqual(["next"]);
    expect(await mailbox.read(alice, poison)).toMatchObject({ state: "dead", attempts: 5 });
    expect((await mailbox.list(OPERATOR, mailQuery.parse({ box: "all", state: "dead" }))).mail).toMatchObject([{ id: poison }]);
  });

  test("M5 a full mailbox pushes back, exactly at its limit, whoever sends at once on two nodes", async () => {
    const limits = { perBox: 10, perSender: 4 };
    mailbox = new Mailbox(store, newId, limits);
    const other = await second(limits);
    const flood = (from: string, count: number) =>
      Promise.allSettled(Array.from({ length: count }, (_, index) => send(index, {}, guest(from), index % 2 ? mailbox : other)));
    const first = await flood("flooder", 12);
    expect(first.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
    for (const answer of first) if (answer.status === "rejected") expect(answer.reason).toMatchObject({ code: "mail.full" });
    const rest = (await Promise.all(["c", "d", "e"].map((name) => flood(name, 4)))).flat();
    expect(rest.filter(({ status }) => status === "fulfilled")).toHaveLength(6);
    expect((await mailbox.counts("bob")).sent).toBe(10);
    // Another mailbox is not full, and reading makes room.
    await send("x", { to: "carol" }, guest("flooder"));
    await expect(send("x", {}, guest("new"))).rejects.toMatchObject({ code: "mail.full" });
    const { id, fence } = await one();
    await mailbox.ack(bob, id, fence);
    await send("x", {}, guest("new"));
  });

  test("mail expires in the database's time, and is not handed out afterwards", async () => {
    const id = await send("soon over", { expires_ms: 1_000 });
    await place.elapse(1_001);
    expect(await receive()).toEqual([]);
    expect((await mailbox.read(alice, id)).state).toBe("expired");
    const usual = await send();
    await place.elapse(7 * DAY - 1_000);
    expect(await mailbox.sweep()).toBe(0);
    await place.elapse(1_001);
    expect(await mailbox.sweep()).toBe(1);
    expect((await mailbox.read(alice, usual)).state).toBe("expired");
  });

  test("an ack within the lease counts although the mail would have expired meanwhile", async () => {
    await send("soon over", { expires_ms: 1_000 });
    const { id, fence } = await one();
    await place.elapse(1_001);
    await mailbox.sweep();
    await mailbox.ack(bob, id, fence);
    expect((await mailbox.read(bob, id)).state).toBe("acked");
  });

  test("to a role: whoever has it receives it, nobody else does", async () => {
    await send("work", { to: "role:engineer" });
    expect(await receive(agent("coder", "writer"))).toEqual([]);
    expect(await receive(guest("engineer"))).toEqual([]);
    const coder = agent("coder", "engineer");
    const { id, fence } = await one(coder);
    await expect(mailbox.ack(agent("tester", "engineer"), id, fence)).rejects.toMatchObject(stale);
    await mailbox.ack(coder, id, fence);
  });

  test("readers may look but not ack; for everybody else it does not exist", async () => {
    const id = await send("for your eyes", { readers: ["carol", "role:audit"] });
    const { fence } = await one();
    for (const who of [guest("carol"), agent("dave", "audit")]) {
      expect(await mailbox.read(who, id)).toMatchObject({ content: "for your eyes", state: "leased", leasedBy: "bob" });
      expect((await mailbox.list(who, mailQuery.parse({ box: "readable" }))).mail).toMatchObject([{ id }]);
      expect(await receive(who)).toEqual([]);
      await expect(mailbox.ack(who, id, fence)).rejects.toMatchObject({ code: "request.forbidden" });
    }
    await expect(mailbox.ack(alice, id, fence)).rejects.toMatchObject({ code: "request.forbidden" });
    const mallory = guest("mallory");
    const unknown = (await mailbox.read(mallory, "x".repeat(20)).catch((error) => error)) as Error;
    const attempts = [() => mailbox.read(mallory, id), () => mailbox.ack(mallory, id, fence), () => mailbox.nack(mallory, id, fence, 0)];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: "request.not_found", message: unknown.message });
    expect((await mailbox.list(mallory, mailQuery.parse({ box: "in" }))).mail).toEqual([]);
    await expect(mailbox.list(mallory, mailQuery.parse({ box: "all" }))).rejects.toMatchObject({ code: "request.forbidden" });
    expect(await mailbox.read(reader, id)).toMatchObject({ id });
    await mailbox.ack(bob, id, fence);
  });

  test("its sender sees state, attempts and delay, and never the fence", async () => {
    const id = await send();
    await place.elapse(2_000);
    expect((await mailbox.read(alice, id)).delayMs).toBeGreaterThanOrEqual(2_000);
    const { fence } = await one();
    await mailbox.nack(bob, id, fence, 60_000);
    await place.elapse(10_000);
    const seen = await mailbox.read(alice, id);
    expect(seen).toMatchObject({ state: "pending", attempts: 1, leaseUntil: null });
    expect(seen.delayMs).toBeLessThan(10_000);
    expect(seen.visibleAt).toBeGreaterThan(seen.at + 60_000);
    expect(seen).not.toHaveProperty("fence");
    expect((await mailbox.list(alice, mailQuery.parse({ box: "sent" }))).mail).toMatchObject([{ id, state: "pending" }]);
  });

  test("lists are the newest first, in parts, without contents", async () => {
    for (let index = 0; index < 5; index++) await send(index, { type: `t${index}` });
    const part = await mailbox.list(bob, mailQuery.parse({ limit: 3 }));
    const rest = await mailbox.list(bob, mailQuery.parse({ limit: 3, before: part.next as number }));
    expect([...part.mail, ...rest.mail].map(({ type }) => type)).toEqual(["t4", "t3", "t2", "t1", "t0"]);
    expect([part.mail[0], rest.next]).toEqual([expect.not.objectContaining({ content: expect.anything() }), null]);
  });

  test("receiving can wait, on another node too, until something comes or its client has left", async () => {
    const other = await second();
    const waiting = receive(bob, { wait_ms: 20_000 }, other);
    await send("at last");
    expect((await waiting).map(({ content }) => content)).toEqual(["at last"]);
    expect(await receive(bob, { wait_ms: 30 })).toEqual([]);
    const left = new AbortController();
    const abandoned = mailbox.receive(bob, mailReceive.parse({ wait_ms: 20_000 }), { signal: left.signal });
    left.abort();
    expect(await abandoned).toEqual([]);
    await send("too late", { conversation: "c" });
    expect(await contents()).toEqual(["too late"]);
  });

  test("settled mail is forgotten after 30 days, and takes nothing of the rest with it", async () => {
    const old = await send("old", { readers: ["carol"] });
    await ackAll(bob, await receive());
    await place.elapse(29 * DAY);
    await send("new", { readers: ["carol"], expires_ms: 30 * DAY });
    await ackAll(bob, await receive());
    await new Mailbox(store, newId).sweep();
    expect((await mailbox.read(alice, old)).state).toBe("acked");
    await place.elapse(DAY + 1);
    await new Mailbox(store, newId).sweep();
    await expect(mailbox.read(alice, old)).rejects.toMatchObject({ code: "request.not_found" });
    expect((await mailbox.list(guest("carol"), mailQuery.parse({ box: "readable" }))).mail).toHaveLength(1);
    expect(await place.tamper("select * from mail_readers")).toHaveLength(1);
  });

  test("a content that is too large is refused", async () => {
    await expect(send("x".repeat(64 * 1024))).rejects.toMatchObject({ code: "request.too_large" });
    await send("x".repeat(64 * 1024 - 2));
    await expect(send("ü".repeat(40_000))).rejects.toMatchObject({ code: "request.too_large" });
  });

  test("who may only look neither sends nor receives", async () => {
    for (const who of [reader, { ...reader, kind: "channel" as const }]) {
      await expect(send("x", {}, who)).rejects.toMatchObject({ code: "request.forbidden" });
      await expect(receive(who)).rejects.toMatchObject({ code: "request.forbidden" });
    }
    expect(newMail.safeParse({ to: "*", type: "t", content: 1 }).success).toBe(false);
  });

  test("the ledger tells of mail without its content", async () => {
    await send("a secret");
    await one();
    expect(JSON.stringify(await store.ledger.read(0, 10))).not.toContain("a secret");
  });
});
