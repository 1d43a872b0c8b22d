import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sendMail } from "../../src/acts/send-mail.ts";
import { lookAtMail, lookAtUnread, takeMail } from "../../src/acts/take-mail.ts";
import { mailQuery, newMail } from "../../src/contract/mail.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, guest } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { WorkingHouse } from "./working-house.ts";

const ALL = { readers: ["*"], writers: ["*"] };

describe.each(PLACES)("claims, mail and votes in turns on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: WorkingHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new WorkingHouse(store, {
      ada: { sees: ["cleo"], subagents: { agents: ["ben"] }, env: { KEY: "hunter2" } },
      ben: { roles: ["engineer"] },
      cleo: { state: "paused" },
      dan: {},
    });
    await house.reconcile({ commons: ALL });
  });
  afterEach(() => place.remove());

  const mailFrom = (caller: Caller, more: object = {}) =>
    sendMail(house, caller, newMail.parse({ to: "ada", type: "note", content: "hello", ...more }));
  const sent = async () => (await house.mailbox.list(OPERATOR, mailQuery.parse({ box: "all" }))).mail;

  test("a claim is held with a fence, kept by a repeat, and refused to others by name", async () => {
    const [ada, ben] = [await house.turnOf("ada"), await house.turnOf("ben")];
    const { fence } = await ada.call("claim", { resource: "repo/src/**" });
    expect((await ada.call("claim", { resource: "repo/src/**" })).fence).toBe(fence);
    expect(await ben.fails("claim", { resource: "repo/src/a.ts" })).toContain('is held by ada through "repo/src/**"');
    expect(await ada.call("claim_renew", { resource: "repo/src/**", fence, ttl_s: 900 })).toMatchObject({ fence });
    expect(await ada.fails("claim_renew", { resource: "repo/src/**", fence: fence + 1 })).toContain("claim.lost");
    expect(await ben.fails("claim_release", { resource: "repo/src/**", fence })).toContain("claim.lost");
    expect(await ada.call("claim_release", { resource: "repo/src/**", fence })).toMatchObject({ released: true });
    expect((await ben.call("claim", { resource: "repo/src/a.ts" })).fence).toBeGreaterThan(fence);
  });

  test("a claim that was begun and not recorded is made again with the same fence", async () => {
    await house.admit("ada");
    const first = await house.take("one", 1_000);
    const { fence } = (await house.claims.take(first.caller, { resource: "r", ttl_ms: 60_000, mode: "exclusive", wait_ms: 0 })).claim;
    await place.elapse(1_001);
    await store.queue.reap();
    const second = await house.take("two");
    expect((await second.call("claim", { resource: "r", ttl_s: 60 })).fence).toBe(fence);
    expect(await house.claims.list(OPERATOR, { limit: 10 })).toMatchObject({ claims: [{ fence }] });
  });

  test("who waits for a claim gets it when it is given back", async () => {
    const [ada, ben] = [await house.turnOf("ada"), await house.turnOf("ben")];
    const { fence } = await ada.call("claim", { resource: "r" });
    const waiting = ben.call("claim", { resource: "r", wait_s: 20 });
    await sleep(100);
    await ada.call("claim_release", { resource: "r", fence });
    expect((await waiting).fence).toBeGreaterThan(fence);
    expect(await ada.fails("claim", { resource: "r", wait_s: 61 })).toContain("tool.bad_arguments");
  });

  test("ASI07 mail is from whoever sends it, whatever the call says", async () => {
    const ada = await house.turnOf("ada");
    for (const forged of [{ from: "operator" }, { sender: "ben" }, { label: "trusted" }, { at: 1 }, { root: "x" }])
      expect(await ada.fails("mail_send", { to: "ben", content: "x", ...forged })).toContain("tool.bad_arguments");
    const { id } = await ada.call("mail_send", {
      to: "ben",
      type: "question",
      content: { ready: true },
      priority: "urgent",
      readers: ["cleo"],
    });
    expect(await house.mailbox.read(OPERATOR, id)).toMatchObject({
      from: "ada",
      to: "ben",
      type: "question",
      label: "trusted",
      readers: ["cleo"],
    });
  });

  test("mail that was recorded as sent is not sent again, and that of a lost turn not at all", async () => {
    await house.admit("ada");
    const first = await house.take("one", 1_000);
    const { id } = await first.call("mail_send", { to: "ben", content: 1 }, 0);
    await place.elapse(1_001);
    await store.queue.reap();
    const second = await house.take("two");
    expect(await second.call("mail_send", { to: "ben", content: 1 }, 0)).toEqual({ id });
    await expect(first.call("mail_send", { to: "ben", content: 2 }, 1)).rejects.toMatchObject({ code: "fence.stale" });
    expect(await sent()).toHaveLength(1);
  });

  test("M5 limits of mailboxes hold for mail of turns", async () => {
    const small = new WorkingHouse(store, { ada: {}, ben: {} }, { perBox: 1, contentBytes: 100 });
    const ada = await small.turnOf("ada");
    expect(await ada.fails("mail_send", { to: "ben", content: "x".repeat(200) })).toContain("request.too_large");
    await ada.call("mail_send", { to: "ben", content: 1 });
    expect(await ada.fails("mail_send", { to: "ben", content: 2 })).toContain("mail.full");
    expect(await ada.fails("mail_send", { to: "not a name", content: 2 })).toContain("tool.bad_arguments");
  });

  test("P5 mail says whether it brings words from outside, and reading it brings them into the turn", async () => {
    const labelOf = async ({ id }: { id: string }) => (await house.mailbox.read(OPERATOR, id)).label;
    expect(await labelOf(await mailFrom(OPERATOR))).toBe("trusted");
    expect(await labelOf(await mailFrom(agent("ben")))).toBe("trusted");
    const clean = await house.turnOf("ada");
    expect((await clean.call("mail_read")).mail).toHaveLength(2);
    expect([...clean.labels]).toEqual([]);
    expect(await labelOf(await mailFrom(guest("eve")))).toBe("external");
    const reads = await house.turnOf("ada");
    expect((await reads.call("mail_read")).mail).toMatchObject([{ from: "eve", label: "external" }]);
    expect([...reads.labels]).toEqual(["external"]);
    // What it writes from then on carries the label on.
    expect(await labelOf(await reads.call("mail_send", { to: "ben", content: "as eve says" }))).toBe("external");
    const ben = await house.turnOf("ben");
    await ben.call("mail_read");
    expect([...ben.labels]).toEqual(["external"]);
  });

  test("P5 an agent that has read an external entry sends external mail, in its turn and outside", async () => {
    await house.pools.write(agent("cleo"), "commons", [{ key: "page", value: 1 }], { external: true });
    const outside = agent("ben");
    await house.pools.read(outside, "commons", "page");
    expect((await house.mailbox.read(OPERATOR, (await mailFrom(outside)).id)).label).toBe("external");
  });

  test("P5 who is shown external mail outside a turn writes what is external, for an hour; its own mail is no news to it", async () => {
    const [ada, eve] = [agent("ada"), guest("eve")];
    const writes = async (caller: Caller, key: string) => (await house.pools.write(caller, "commons", [{ key, value: 1 }]))[0]?.label;
    await mailFrom(OPERATOR);
    const take = () => takeMail(house, ada, { max: 10, visibility_ms: 1_000, wait_ms: 0 }, {});
    expect(await take()).toHaveLength(1);
    expect(await writes(ada, "a")).toBe("trusted");
    const { id } = await mailFrom(eve);
    await lookAtMail(house, eve, id);
    expect(await writes(eve, "b")).toBe("trusted");
    expect(await take()).toHaveLength(1);
    expect(await writes(ada, "c")).toBe("external");
    await place.elapse(3_600_001);
    expect(await writes(ada, "d")).toBe("trusted");
    await lookAtMail(house, ada, id);
    expect(await writes(ada, "e")).toBe("external");
    await place.elapse(3_600_001);
    await house.mailbox.sweep();
    expect(await lookAtUnread(house, ada, 10)).toHaveLength(2);
    expect(await writes(ada, "f")).toBe("external");
  });

  test("M1 mail that is read and not acked comes again; acked, with its fence or without, it does not", async () => {
    await mailFrom(agent("ben"));
    const ada = await house.turnOf("ada");
    const [first] = (await ada.call("mail_read", { visibility_s: 10 })).mail;
    expect((await ada.call("mail_read")).mail).toEqual([]);
    await place.elapse(10_001);
    expect(await ada.fails("mail_ack", { id: first.id, fence: first.fence })).toContain("mail.stale");
    expect(await ada.fails("mail_ack", { id: first.id })).toContain("mail.stale");
    const [again] = (await ada.call("mail_read")).mail;
    expect([again.id, again.attempt]).toEqual([first.id, 2]);
    expect(await ada.call("mail_ack", { id: again.id })).toEqual({ id: again.id, state: "acked" });
    const ben = await house.turnOf("ben");
    expect(await ben.fails("mail_ack", { id: again.id, fence: again.fence })).not.toContain("acked");
    expect((await sent())[0]?.state).toBe("acked");
  });

  test("ASI03 one mail can be looked at by its id, by those who may", async () => {
    const { id } = await mailFrom(guest("eve"), { content: "x".repeat(20_000) });
    const [ada, dan] = [await house.turnOf("ada"), await house.turnOf("dan")];
    expect(await ada.call("mail_read", { id })).toMatchObject({ from: "eve", content: "x".repeat(20_000), label: "external" });
    expect([...ada.labels]).toEqual(["external"]);
    expect(await dan.fails("mail_read", { id })).toBe(await dan.fails("mail_read", { id: "nothing" }));
  });

  test("a proposal is put, voted on and decided, with its writes", async () => {
    const [ada, ben] = [await house.turnOf("ada"), await house.turnOf("ben")];
    const draft = { subject: "port 80?", electorate: ["ada", "ben"], rule: "all", writes: [{ key: "port", value: 80 }] };
    const { id, hash, state } = await ada.call("propose", draft);
    expect(state).toBe("open");
    expect((await ben.call("proposal_check")).proposals).toMatchObject([{ id, subject: "port 80?", proposer: "ada", label: "trusted" }]);
    await ada.call("vote", { id, vote: "yes", hash });
    expect(await ben.fails("vote", { id, vote: "yes", hash: "another" })).toContain("proposal.other_hash");
    expect(await ben.call("vote", { id, vote: "yes", hash })).toMatchObject({ state: "committed" });
    expect(await ben.call("vote", { id, vote: "no", hash })).toMatchObject({ state: "committed" });
    expect(await house.pools.read(OPERATOR, "commons", "port")).toMatchObject({ value: 80, label: "trusted" });
    const dan = await house.turnOf("dan");
    expect(await dan.fails("proposal_check", { id })).toContain("there is no proposal");
    expect(await dan.fails("vote", { id, vote: "yes", hash })).toContain("proposal.not_elector");
    expect(await ada.fails("propose", { ...draft, electorate: ["ada", "ada"] })).toContain("tool.bad_arguments");
    expect([...ada.labels, ...ben.labels, ...dan.labels]).toEqual([]);
  });

  test("P5 what a turn with words from outside proposes is external, and nobody votes on it without a person", async () => {
    const [ada, ben] = [await house.turnOf("ada"), await house.turnOf("ben")];
    ada.labels.add("external");
    const { id, hash, label } = await ada.call("propose", { subject: "s", electorate: ["ben"], writes: [{ key: "k", value: 1 }] });
    expect(label).toBe("external");
    await ben.call("proposal_check", { id });
    expect([...ben.labels]).toEqual(["external"]);
    expect(await ben.settle("vote", { id, vote: "yes", hash })).toMatchObject({ kind: "asks" });
    expect((await house.agreements.read(OPERATOR, id)).votes).toEqual([]);
  });

  test("an agent is told of itself, of those it sees and may delegate to, and of nobody else; without secrets", async () => {
    const listed = async (id: string) => (await (await house.turnOf(id)).call("agent_list")).agents;
    const mine = await listed("ada");
    expect(mine).toEqual([
      { id: "ada", state: "active", roles: [], you: true },
      { id: "ben", state: "active", roles: ["engineer"], delegate: true },
      { id: "cleo", state: "paused", roles: [] },
    ]);
    expect(JSON.stringify(mine)).not.toContain("hunter2");
    expect(await listed("dan")).toEqual([{ id: "dan", state: "active", roles: [], you: true }]);
  });

  test("ASI02 what could carry a secret to others is put before a person", async () => {
    const ada = await house.turnOf("ada");
    ada.labels.add("secret");
    const calls: [string, object][] = [
      ["mail_send", { to: "ben", content: "hunter2" }],
      ["claim", { resource: "hunter2" }],
      ["propose", { subject: "hunter2", electorate: ["ben"] }],
    ];
    for (const [tool, args] of calls) expect(await ada.settle(tool, args)).toMatchObject({ kind: "asks" });
    expect(await sent()).toEqual([]);
  });
});
