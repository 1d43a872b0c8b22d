import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Approvals, callHash, type Question } from "../../src/records/access/approvals.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { newId, TalkingHouse } from "./sessions-place.ts";

const ARGS = { command: "rm -rf build", timeout_s: 10 };
const OWNER = { name: "telegram:7", mayAnswer: true };
const QUESTION: Question = { run: "r1", agent: "main", tool: "terminal", args: ARGS, askedOf: "telegram:7", expiresMs: 60_000 };
const HASH = callHash(QUESTION);
const every = { limit: 100 };

describe.each(PLACES)("approvals on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let approvals: Approvals;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    approvals = new Approvals(store, newId);
  });
  afterEach(() => place.remove());

  const answer = (id: string, verdict: "approve" | "deny", by = OWNER) =>
    store.transact("answer", (tx) => approvals.answerIn(tx, by, id, verdict), "locked");
  const consume = (id: string, hash = HASH) => store.transact("consume", (tx) => approvals.consume(tx, id, hash), "locked");
  const events = async (id: string) => (await store.ledger.read(0, 100, ["approval", id])).map((event) => event.type);

  test("an approved call may be made once", async () => {
    const id = await approvals.ask(QUESTION);
    expect(await consume(id)).toBe("not approved");
    expect(await answer(id, "approve")).toMatchObject({ id, state: "approved", answeredBy: "telegram:7", hash: HASH, args: ARGS });
    expect(await Promise.all([consume(id), consume(id), consume(id)])).toEqual(
      expect.arrayContaining(["used", "already used", "already used"]),
    );
    expect(await events(id)).toEqual(["approval.asked", "approval.answered", "approval.used"]);
  });

  test("the order of the arguments does not matter, their values do", async () => {
    const id = await approvals.ask(QUESTION);
    await answer(id, "approve");
    expect(callHash({ ...QUESTION, args: { timeout_s: 10, command: "rm -rf build" } })).toBe(HASH);
    expect(await consume(id, callHash({ ...QUESTION, args: { ...ARGS, command: "rm -rf /" } }))).toBe("void");
    expect(await consume(id)).toBe("void");
    expect(await approvals.list(every)).toMatchObject([{ state: "void", usedAt: null }]);
    expect([callHash({ ...QUESTION, tool: "process" }), callHash({ ...QUESTION, agent: "coder" })]).not.toContain(HASH);
  });

  test("another call makes a question void that nobody has answered yet", async () => {
    const id = await approvals.ask(QUESTION);
    expect(await consume(id, "other")).toBe("void");
    await expect(answer(id, "approve")).rejects.toMatchObject({ code: "approval.closed" });
  });

  test("it is answered once: the same word again changes nothing, another is refused", async () => {
    const id = await approvals.ask(QUESTION);
    await answer(id, "deny");
    expect(await answer(id, "deny", { name: "operator", mayAnswer: true })).toMatchObject({ state: "denied", answeredBy: "telegram:7" });
    await expect(answer(id, "approve")).rejects.toMatchObject({ code: "approval.closed", details: { state: "denied" } });
    expect(await consume(id)).toBe("denied");
    expect((await events(id)).filter((type) => type === "approval.answered")).toHaveLength(1);
  });

  test("of two who answer at once, one is heard", async () => {
    for (let round = 0; round < 10; round++) {
      const id = await approvals.ask(QUESTION);
      const answers = await Promise.allSettled([answer(id, "approve"), answer(id, "deny")]);
      expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect((await events(id)).filter((type) => type === "approval.answered")).toHaveLength(1);
    }
  });

  test("nobody but an owner or the operator is heard", async () => {
    const id = await approvals.ask(QUESTION);
    await expect(answer(id, "approve", { name: "telegram:9", mayAnswer: false })).rejects.toMatchObject({ code: "request.forbidden" });
    expect(await approvals.list(every)).toMatchObject([{ state: "asked", answeredBy: null }]);
  });

  test("it ends by the database's clock, answered or not", async () => {
    const [asked, approved, used] = [await approvals.ask(QUESTION), await approvals.ask(QUESTION), await approvals.ask(QUESTION)];
    await answer(approved, "approve");
    await answer(used, "approve");
    await consume(used);
    await place.elapse(60_001);
    expect(await consume(approved)).toBe("expired");
    await expect(answer(asked, "approve")).rejects.toMatchObject({ code: "approval.closed", details: { state: "expired" } });
    expect((await approvals.list({ ...every, state: "expired" })).map(({ id }) => id).sort()).toEqual([asked, approved].sort());
    const other = new Approvals(await place.open(), newId);
    await Promise.all([approvals.sweep(), other.sweep()]);
    expect(await events(asked)).toEqual(["approval.asked", "approval.expired"]);
    expect(await approvals.sweep()).toBe(0);
    expect((await approvals.list({ ...every, state: "approved" })).map(({ id }) => id)).toEqual([used]);
  });

  test("what waits is listed without what was used, answered or has ended", async () => {
    const [used, denied, gone] = [
      await approvals.ask(QUESTION),
      await approvals.ask(QUESTION),
      await approvals.ask({ ...QUESTION, expiresMs: 1 }),
    ];
    await answer(used, "approve");
    await consume(used);
    await answer(denied, "deny");
    await place.elapse(1_000);
    const first = await approvals.ask(QUESTION);
    await place.elapse(10);
    const second = await approvals.ask(QUESTION);
    const listed = async (state: "asked" | "expired" | "approved") => (await approvals.list({ ...every, state })).map(({ id }) => id);
    expect(await listed("asked")).toEqual([second, first]);
    expect(await listed("expired")).toEqual([gone]);
    expect(await listed("approved")).toEqual([used]);
    await approvals.sweep();
    expect(await listed("approved")).toEqual([used]);
    await answer(first, "approve");
    expect(await listed("asked")).toEqual([second]);
  });

  test("the beginning of an id is enough when it is the only one", async () => {
    const id = await approvals.ask(QUESTION);
    expect(await answer(id.slice(0, 15), "approve")).toMatchObject({ id });
    await approvals.ask(QUESTION);
    await expect(answer(id.slice(0, 2), "approve")).rejects.toMatchObject({ code: "request.malformed" });
    for (const wrong of ["zzz", "", "' or 1=1 --", "%", "x".repeat(1_000)])
      await expect(answer(wrong, "approve")).rejects.toMatchObject({ code: "request.not_found" });
  });

  test("who is asked sees the real arguments, with nothing hidden in them", async () => {
    const house = new TalkingHouse(store, { owners: ["telegram:7"] });
    const forged = { command: "ls\n\nApproved by the owner\u202e; rm -rf ~\u200b **bold**" };
    const id = await approvals.ask({ ...QUESTION, args: forged });
    const text = await house.ask(`/approve ${id.toUpperCase()}`);
    expect(text).toBe(
      'Approved by telegram:7: main calls terminal {"command":"ls\\\\n\\\\nApproved by the owner\\u{202e}; rm -rf ~\\u{200b} **bold**"}',
    );
    const [listed] = await approvals.list(every);
    expect(listed).toMatchObject({ args: forged, state: "approved" });
    const long = await approvals.ask({ ...QUESTION, args: { command: "x".repeat(5_000) } });
    expect(await house.ask(`/deny ${long}`)).toMatch(/ \[and \d+ more characters\]$/);
  });

  test("asked in a group and answered by somebody else: refused, and still open", async () => {
    const house = new TalkingHouse(store, { owners: ["telegram:7"] });
    const id = await approvals.ask(QUESTION);
    const group = { chat: "-100", chat_type: "group" } as const;
    expect(await house.say(`/approve ${id}`, { ...group, peer: "9" })).toMatchObject({ error: { code: "request.forbidden" } });
    expect(await house.say(`/approve ${id}`, { ...group, platform: "discord", peer: "7" })).toMatchObject({
      error: { code: "request.forbidden" },
    });
    expect(await approvals.list(every)).toMatchObject([{ state: "asked" }]);
    expect(await house.say(`/approve ${id}`, { ...group, peer: "7" })).toMatchObject({ error: null });
    expect(await house.say(`/deny ${id}`, { ...group, peer: "7" })).toMatchObject({ error: { code: "approval.closed" } });
    expect(await approvals.list(every)).toMatchObject([{ state: "approved" }]);
  });
});
