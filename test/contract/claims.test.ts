import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ClaimRequest, claimQuery, newClaim } from "../../src/contract/claims.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { TimeSlice } from "../../src/kernel/time-slice.ts";
import { type ClaimLimits, Claims, type TakeOptions } from "../../src/records/claims/claims.ts";
import { restoreBackup } from "../../src/store/restore-backup.ts";
import type { Store } from "../../src/store/store.ts";
import { guest, reader } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const FILE = "repo/src/a.ts";
const TTL = 15_000;

describe.each(PLACES)("claims on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let claims: Claims;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    claims = new Claims(store, "node-1");
  });
  afterEach(() => place.remove());

  const ask = (
    who: string,
    resource = FILE,
    more: Partial<ClaimRequest> = {},
    node = claims,
    options: TakeOptions = {},
  ): ReturnType<Claims["take"]> => node.take(guest(who), newClaim.parse({ resource, ttl_ms: TTL, ...more }), options);
  const fenceOf = async (...args: Parameters<typeof ask>): Promise<number> => (await ask(...args)).claim.fence;
  const renew = (who: string, fence: number, resource = FILE, node = claims) => node.renew(guest(who), { resource, fence, ttl_ms: TTL });
  const second = async (limits: Partial<ClaimLimits> = {}): Promise<Claims> => new Claims(await place.open(), "node-2", limits);
  const listed = async (query = {}) => (await claims.list(reader, claimQuery.parse(query))).claims;
  const refusal = { held: { code: "claim.held" }, lost: { code: "claim.lost" }, tooMany: { code: "claim.too_many" } };
  const events = async () => (await store.ledger.read(0, 1_000)).map(({ type, actor }) => `${type} ${actor}`);
  /** In line for sure: the row is there. */
  const inLine = async (count: number): Promise<void> => {
    while ((await place.tamper("select id from claim_waiters")).length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  test("L1 one holder at a time, however many ask at once on two nodes", async () => {
    const other = await second();
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => ask(`h${index}`, FILE, {}, index % 2 ? claims : other)),
    );
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const refused = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []));
    for (const reason of refused) expect(reason).toMatchObject(refusal.held);
    expect(new Set(refused.map(({ details }) => details.holder)).size).toBe(1);
  });

  test("L1 patterns and names that overlap never have two holders, whoever asks at once on two nodes", async () => {
    const other = await second();
    const names = ["r/**", "r/a/**", "r/a/b", "r/*/b", "r/a/*", "r/**/b"];
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.allSettled(names.map((name, index) => ask(`h${index}`, name, {}, index % 2 ? claims : other)));
      const won = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value.claim] : []));
      expect(won).toHaveLength(1);
      for (const claim of won) await claims.release(OPERATOR, claim);
    }
  });

  test("L1 a later holder has a larger fence, after expiry, release, restart and after everything was swept", async () => {
    const fences = [await fenceOf("a")];
    await place.elapse(TTL + 1);
    fences.push(await fenceOf("b"));
    await claims.release(guest("b"), { resource: FILE, fence: fences[1] as number });
    fences.push(await fenceOf("c"));
    await store.close();
    store = await place.open();
    claims = new Claims(store, "node-1");
    await place.elapse(TTL + 1);
    expect(await claims.sweep()).toBe(1);
    fences.push(await fenceOf("d"));
    expect(fences).toEqual([...new Set(fences)].sort((x, y) => x - y));
  });

  test("L1 L5 after a restore nobody holds anything, and fences are larger than all that were given out since the backup", async () => {
    const folder = mkdtempSync(join(tmpdir(), "guildhall-claims-"));
    const target = makePlace();
    try {
      const old = await fenceOf("a");
      await store.backup(join(folder, "backup.gz"));
      await claims.release(guest("a"), { resource: FILE, fence: old });
      const since = await fenceOf("b");
      await restoreBackup(target.location, join(folder, "backup.gz"));
      const restored = new Claims(await target.open(), "node-1");
      await expect(renew("a", old, FILE, restored)).rejects.toMatchObject(refusal.lost);
      expect(await fenceOf("c", FILE, {}, restored)).toBeGreaterThan(since);
    } finally {
      await target.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("L1 what a holder was told stands: asking again for less time takes none away", async () => {
    const fence = await fenceOf("a");
    expect((await claims.renew(guest("a"), { resource: FILE, fence, ttl_ms: 1 })).fence).toBe(fence);
    await ask("a", FILE, { ttl_ms: 1 });
    await place.elapse(TTL / 2);
    await expect(ask("b")).rejects.toMatchObject(refusal.held);
  });

  test("L2 a holder that was stopped past its time and goes on is refused", async () => {
    const old = await fenceOf("paused");
    await place.elapse(TTL + 1);
    const current = await fenceOf("successor");
    const write = (who: string, fence: number) =>
      store.transact(
        "write",
        async (tx) => {
          await claims.guard(tx, guest(who), FILE, fence);
          await store.ledger.append(tx, { type: "daemon.started", actor: `${fence}`, subject: ["write"] });
        },
        "locked",
      );
    await expect(write("paused", old)).rejects.toMatchObject(refusal.lost);
    await expect(write("paused", current)).rejects.toMatchObject(refusal.lost);
    await write("successor", current);
    expect((await events()).filter((event) => event.startsWith("daemon"))).toEqual([`daemon.started ${current}`]);
  });

  test("L2 a guard holds the claim until its transaction ends: nobody takes over in between", async () => {
    const fence = await fenceOf("a");
    const other = await second();
    const order: string[] = [];
    const writing = store.transact(
      "write",
      async (tx) => {
        await claims.guard(tx, guest("a"), FILE, fence);
        order.push("guarded");
        if (place.kind === "postgres") await new Promise((resolve) => setTimeout(resolve, 150));
        order.push("written");
      },
      "locked",
    );
    while (order.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await place.elapse(TTL + 1);
    await ask("b", FILE, {}, other);
    order.push("taken over");
    await writing;
    expect(order).toEqual(["guarded", "written", "taken over"]);
  });

  test("L3 a guard refuses a claim whose time is over, also where nobody has taken it over yet", async () => {
    const fence = await fenceOf("a");
    const guard = () => store.transact("guard", (tx) => claims.guard(tx, guest("a"), FILE, fence), "locked");
    await guard();
    await place.elapse(TTL + 1);
    await expect(guard()).rejects.toMatchObject(refusal.lost);
  });

  test("L2 a guard is satisfied by a pattern that covers the resource, and by no other claim", async () => {
    const fence = await fenceOf("a", "repo/src/**");
    const guard = (resource: string) => store.transact("guard", (tx) => claims.guard(tx, guest("a"), resource, fence), "locked");
    await guard("repo/src/deep/x.ts");
    await guard("repo/src/**");
    await expect(guard("repo/docs/x.md")).rejects.toMatchObject(refusal.lost);
    await expect(guard("repo/**")).rejects.toMatchObject(refusal.lost);
  });

  // On SQLite the machine that has the file has the only clock there is.
  test.skipIf(makePlace.name === "sqlitePlace")("L3 a node whose clock is ten minutes off changes nothing", async () => {
    const fast = new Claims(await place.open({ clock: { now: () => Date.now() + 600_000 } }), "fast");
    const slow = new Claims(await place.open({ clock: { now: () => Date.now() - 600_000 } }), "slow");
    const fence = await fenceOf("slow", FILE, {}, slow);
    await expect(ask("fast", FILE, {}, fast)).rejects.toMatchObject(refusal.held);
    expect(await fast.sweep()).toBe(0);
    await renew("slow", fence, FILE, slow);
    await place.elapse(TTL + 1);
    await expect(renew("slow", fence, FILE, slow)).rejects.toMatchObject(refusal.lost);
    expect((await ask("fast", FILE, {}, fast)).fresh).toBe(true);
  });

  test("L3 the system clock of the process plays no role", async () => {
    const real = Date.now;
    const fence = await fenceOf("a");
    try {
      if (place.kind === "postgres") Date.now = () => real() + 600_000;
      await expect(ask("b")).rejects.toMatchObject(refusal.held);
      expect((await renew("a", fence)).fence).toBe(fence);
    } finally {
      Date.now = real;
    }
  });

  test("L4 a dead holder's resource is free when its time is up, and the ledger says that it was lost", async () => {
    await ask("dead");
    await place.elapse(TTL - 500);
    expect(await claims.sweep()).toBe(0);
    await expect(ask("b")).rejects.toMatchObject(refusal.held);
    await place.elapse(501);
    expect(await claims.sweep()).toBe(1);
    expect(await events()).toEqual(["claim.taken dead", "claim.lost dead"]);
    expect((await ask("b")).fresh).toBe(true);
  });

  test("L4 a takeover before any sweep tells of the loss first", async () => {
    await ask("dead", "repo/src/**");
    await place.elapse(TTL + 1);
    await ask("b");
    expect(await events()).toEqual(["claim.taken dead", "claim.lost dead", "claim.taken b"]);
    expect(await claims.sweep()).toBe(0);
  });

  test("L5 renewing extends a live claim and never revives a lost one", async () => {
    const fence = await fenceOf("a");
    await place.elapse(TTL - 1_000);
    await renew("a", fence);
    await place.elapse(TTL - 1_000);
    await expect(ask("b")).rejects.toMatchObject(refusal.held);
    await place.elapse(1_001);
    await expect(renew("a", fence)).rejects.toMatchObject(refusal.lost);
    await ask("b");
    await expect(renew("a", fence)).rejects.toMatchObject(refusal.lost);
  });

  test("L5 renewing races with taking over: never do both succeed", async () => {
    const other = await second();
    for (let round = 0; round < 30; round++) {
      const resource = `race/${round}`;
      const fence = await fenceOf("a", resource, { ttl_ms: 30 });
      await new Promise((resolve) => setTimeout(resolve, 25 + (round % 10)));
      const [renewed, taken] = await Promise.allSettled([
        claims.renew(guest("a"), { resource, fence, ttl_ms: 60_000 }),
        ask("b", resource, {}, other),
      ]);
      expect([renewed.status, taken.status].filter((status) => status === "fulfilled").length).toBeLessThanOrEqual(1);
      const holders = (await listed({ prefix: resource })).filter((claim) => claim.resource === resource);
      expect(holders.map(({ holder }) => holder)).toEqual(
        taken.status === "fulfilled" ? ["b"] : renewed.status === "fulfilled" ? ["a"] : [],
      );
    }
  });

  test("L5 a renewal that is under way when another wants to take over keeps its claim", async () => {
    const fence = await fenceOf("a");
    const other = await second();
    let renewed = false;
    const renewing = store.transact(
      "renew slowly",
      async (tx) => {
        await claims.renewIn(tx, guest("a"), { resource: FILE, fence, ttl_ms: 100 * TTL });
        renewed = true;
        if (place.kind === "postgres") await new Promise((resolve) => setTimeout(resolve, 200));
      },
      "locked",
    );
    while (!renewed) await new Promise((resolve) => setTimeout(resolve, 1));
    await place.elapse(TTL + 1);
    await expect(ask("b", FILE, {}, other)).rejects.toMatchObject(refusal.held);
    await renewing;
    expect(await listed()).toMatchObject([{ holder: "a", fence }]);
  });

  test("L6 a stale holder's release does nothing", async () => {
    const old = await fenceOf("a");
    await place.elapse(TTL + 1);
    await ask("b");
    await expect(claims.release(guest("a"), { resource: FILE, fence: old })).rejects.toMatchObject(refusal.lost);
    await expect(ask("c")).rejects.toMatchObject(refusal.held);
    expect(await events()).not.toContain("claim.released a");
  });

  test("L6 nobody renews or releases another's claim, not even with its fence; an operator may", async () => {
    const fence = await fenceOf("a");
    await expect(renew("b", fence)).rejects.toMatchObject(refusal.lost);
    await expect(claims.release(guest("b"), { resource: FILE, fence })).rejects.toMatchObject(refusal.lost);
    await expect(claims.release(guest("a"), { resource: "repo/src/b.ts", fence })).rejects.toMatchObject(refusal.lost);
    await claims.release(OPERATOR, { resource: FILE, fence });
    expect((await ask("b")).fresh).toBe(true);
  });

  test("the holder's own repeat has the same fence and lives longer, never shorter", async () => {
    const first = await ask("a");
    await place.elapse(5_000);
    const again = await ask("a");
    expect([again.fresh, again.claim.fence]).toEqual([false, first.claim.fence]);
    expect(again.claim.expiresAt).toBeGreaterThanOrEqual(first.claim.expiresAt + 5_000);
    expect((await ask("a", FILE, { ttl_ms: 1 })).claim.expiresAt).toBe(again.claim.expiresAt);
  });

  test("a refusal names the holder, until when, and through what", async () => {
    const { claim } = await ask("a", "repo/src/**");
    await expect(ask("b")).rejects.toMatchObject({
      code: "claim.held",
      details: { holder: "a", expiresAt: claim.expiresAt, resource: "repo/src/**", waiting: false },
    });
    expect((await ask("b", "repo/docs/x")).fresh).toBe(true);
    expect((await ask("b", "repo/src-old/x")).fresh).toBe(true);
    await expect(ask("b", "repo/**")).rejects.toMatchObject(refusal.held);
  });

  test("one's own claims are in nobody's way but others'", async () => {
    await ask("a", "repo/src/a.ts");
    expect((await ask("a", "repo/src/**")).fresh).toBe(true);
    await expect(ask("b", "repo/src/b.ts")).rejects.toMatchObject(refusal.held);
  });

  test("shared claims are compatible with shared ones, and with nothing else", async () => {
    const a = await fenceOf("a", FILE, { mode: "shared" });
    await ask("b", "repo/**", { mode: "shared" });
    await expect(ask("c")).rejects.toMatchObject(refusal.held);
    // Stronger only when nobody else is there; a weaker repeat changes nothing.
    await expect(ask("a")).rejects.toMatchObject(refusal.held);
    const [, b] = (await listed()).sort((x, y) => x.fence - y.fence);
    await claims.release(guest("b"), { resource: "repo/**", fence: b?.fence as number });
    expect((await ask("a")).claim).toMatchObject({ fence: a, mode: "exclusive" });
    expect((await ask("a", FILE, { mode: "shared" })).claim.mode).toBe("exclusive");
    await expect(ask("c", FILE, { mode: "shared" })).rejects.toMatchObject(refusal.held);
  });

  test("no claim is held longer than its longest time, however often it is renewed", async () => {
    claims = new Claims(store, "node-1", { maxHoldMs: 40_000 });
    const { claim } = await ask("a");
    await place.elapse(14_000);
    await renew("a", claim.fence);
    await place.elapse(14_000);
    expect((await renew("a", claim.fence)).expiresAt).toBe(claim.maxUntil);
    expect((await ask("a")).claim.expiresAt).toBe(claim.maxUntil);
    await place.elapse(12_001);
    await expect(renew("a", claim.fence)).rejects.toMatchObject(refusal.lost);
    expect((await ask("b", FILE, { ttl_ms: 86_400_000 })).claim.maxUntil).toBeLessThan(claim.maxUntil + 50_000);
  });

  test("who waits gets it when it is released, in the order they came, from two nodes", async () => {
    const other = await second();
    const fence = await fenceOf("a");
    const order: string[] = [];
    const wait = async (who: string, node: Claims): Promise<void> => {
      const { claim } = await ask(who, FILE, { wait_ms: 20_000 }, node);
      order.push(who);
      await claims.release(guest(who), claim);
    };
    const waiting: Promise<void>[] = [];
    for (const [index, who] of ["b", "c", "d", "e"].entries()) {
      waiting.push(wait(who, index % 2 ? claims : other));
      await inLine(index + 1);
    }
    expect(await listed()).toMatchObject([{ holder: "a", waiters: 4 }]);
    await claims.release(guest("a"), { resource: FILE, fence });
    await Promise.all(waiting);
    expect(order).toEqual(["b", "c", "d", "e"]);
    expect(await place.tamper("select * from claim_waiters")).toEqual([]);
    expect((await events()).filter((event) => event.startsWith("claim.taken"))).toEqual(
      ["a", "b", "c", "d", "e"].map((who) => `claim.taken ${who}`),
    );
  });

  test("who waits gets it when its holder's time is up", async () => {
    await ask("a");
    const waiting = ask("b", FILE, { wait_ms: 20_000 });
    await inLine(1);
    await place.elapse(TTL + 1);
    expect((await waiting).claim.holder).toBe("b");
  });

  test("a newcomer does not jump the line, through a pattern neither; who is in nobody's way need not wait", async () => {
    const shared = await fenceOf("a", FILE, { mode: "shared" });
    const waiting = ask("b", "repo/src/**", { wait_ms: 20_000 });
    await inLine(1);
    await expect(ask("c", FILE, { mode: "shared" })).rejects.toMatchObject({ code: "claim.held", details: { holder: "b", waiting: true } });
    await expect(ask("c", "repo/*/x")).rejects.toMatchObject({ code: "claim.held", details: { waiting: true } });
    expect((await ask("c", "repo/docs")).fresh).toBe(true);
    // The holder itself is not stopped by those who wait for it.
    expect((await ask("a", FILE, { mode: "shared" })).fresh).toBe(false);
    await claims.release(guest("a"), { resource: FILE, fence: shared });
    expect((await waiting).claim.resource).toBe("repo/src/**");
  });

  test("waiting ends with the time limit, and leaves nothing in the line", async () => {
    await ask("a");
    await expect(ask("b", FILE, { wait_ms: 50 })).rejects.toMatchObject({ code: "claim.held", details: { holder: "a" } });
    expect(await place.tamper("select * from claim_waiters")).toEqual([]);
  });

  test("a client that goes away leaves the line, and those behind it move up", async () => {
    const fence = await fenceOf("a");
    const gone = new AbortController();
    const first = ask("b", FILE, { wait_ms: 20_000 }, claims, { signal: gone.signal });
    await inLine(1);
    const next = ask("c", FILE, { wait_ms: 20_000 });
    await inLine(2);
    gone.abort();
    await expect(first).rejects.toMatchObject(refusal.held);
    await claims.release(guest("a"), { resource: FILE, fence });
    expect((await next).claim.holder).toBe("c");
    expect(await events()).not.toContain("claim.taken b");
  });

  test("L4 a waiter whose process died does not stop the line", async () => {
    const fence = await fenceOf("a");
    const dying = await place.open();
    void ask("b", FILE, { wait_ms: 20_000 }, new Claims(dying, "node-2")).catch(() => {});
    await inLine(1);
    // Nothing that the process would still do reaches the database.
    await dying.close();
    await claims.release(guest("a"), { resource: FILE, fence });
    await expect(ask("c")).rejects.toMatchObject({ details: { holder: "b", waiting: true } });
    await place.elapse(4_001);
    expect((await ask("c")).fresh).toBe(true);
    await claims.sweep();
    expect(await place.tamper("select * from claim_waiters")).toEqual([]);
  });

  test("limits hold exactly, whoever asks at once on two nodes", async () => {
    const limits = { perHolder: 5, waitersPerResource: 2 };
    claims = new Claims(store, "node-1", limits);
    const other = await second(limits);
    const answers = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) => ask("a", `r${index}/x`, {}, index % 2 ? claims : other)),
    );
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    for (const answer of answers) if (answer.status === "rejected") expect(answer.reason).toMatchObject(refusal.tooMany);
    const held = answers.findIndex(({ status }) => status === "fulfilled");
    const waiting = await Promise.allSettled(
      Array.from({ length: 5 }, (_, index) => ask(`w${index}`, `r${held}/x`, { wait_ms: 300 }, index % 2 ? claims : other)),
    );
    const codes = waiting.map((answer) => (answer.status === "rejected" ? answer.reason.code : "taken")).sort();
    expect(codes).toEqual(["claim.held", "claim.held", "claim.too_many", "claim.too_many", "claim.too_many"]);
  });

  test("a full holder may still take what it stands in line for", async () => {
    claims = new Claims(store, "node-1", { perHolder: 2 });
    const fence = await fenceOf("a");
    await ask("b", "other");
    const waiting = ask("b", FILE, { wait_ms: 20_000 });
    await inLine(1);
    await expect(ask("b", "third")).rejects.toMatchObject(refusal.tooMany);
    await claims.release(guest("a"), { resource: FILE, fence });
    expect((await waiting).fresh).toBe(true);
  });

  test("the list is by name, in parts, filtered by what a name begins with or what it overlaps with", async () => {
    for (const name of ["repo/src/b.ts", "repo/src/a.ts", "repo/docs/**", "other/ü"]) await ask("a", name);
    await ask("b", "repo/src/c.ts", { ttl_ms: 1 });
    await place.elapse(5);
    expect((await listed()).map(({ resource }) => resource)).toEqual(["other/ü", "repo/docs/**", "repo/src/a.ts", "repo/src/b.ts"]);
    expect((await listed({ prefix: "repo/s" })).map(({ resource }) => resource)).toEqual(["repo/src/a.ts", "repo/src/b.ts"]);
    expect((await listed({ overlaps: "repo/docs/x/y" })).map(({ resource }) => resource)).toEqual(["repo/docs/**"]);
    expect((await listed({ overlaps: "repo/**" })).length).toBe(3);
    const part = await claims.list(reader, claimQuery.parse({ limit: 3 }));
    const rest = await claims.list(reader, claimQuery.parse({ limit: 3, after: part.next as string }));
    expect([...part.claims, ...rest.claims].map(({ resource }) => resource)).toHaveLength(4);
    expect(rest.next).toBeNull();
  });

  test("who may only look takes nothing", async () => {
    const request = newClaim.parse({ resource: FILE });
    await expect(claims.take(reader, request)).rejects.toMatchObject({ code: "request.forbidden" });
    await expect(claims.take({ ...reader, kind: "channel" }, request)).rejects.toMatchObject({ code: "request.forbidden" });
    await expect(claims.list({ ...reader, kind: "channel" }, claimQuery.parse({}))).rejects.toMatchObject({ code: "request.forbidden" });
  });

  test("a name that is taken apart differently is another name", async () => {
    await ask("a", "a/b");
    for (const [index, name] of ["a//b", "a/b/", "/a/b", "a%2Fb", "A/b"].entries()) expect((await ask(`x${index}`, name)).fresh).toBe(true);
  });

  test("R5 nobody stands still while a pattern is held against ten thousand claims, live or expired", { timeout: 60_000 }, async () => {
    await place.tamper(`insert into claims (fence, name, key, pattern, holder, mode, taken_at, expires_at, max_until)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000)
      select 1000000000 + i, 'repo/src/d' || (i % 100) || '/f' || i || '.ts', 'repo/src/d' || (i % 100) || '/f' || i || '.ts/', 0, 'h' || (i % 20),
        'exclusive', 1, 4000000000000, 4000000000000 from n`);
    /** How often others come to their turn, on a clock that goes on with every look at it: then a slice of time is a hundred claims. */
    const turnsOfOthers = async (work: () => Promise<unknown>): Promise<number> => {
      let time = performance.now();
      const clock = vi.spyOn(performance, "now").mockImplementation(() => {
        time += 0.1;
        return time;
      });
      const turns = vi.spyOn(TimeSlice.prototype, "next");
      try {
        await work();
        return turns.mock.calls.length;
      } finally {
        turns.mockRestore();
        clock.mockRestore();
      }
    };
    expect(await turnsOfOthers(() => ask("new", "repo/**/a*b*c*d"))).toBeGreaterThan(50);
    expect(await turnsOfOthers(() => ask("new", "repo/**/f9999.ts").catch(() => {}))).toBeGreaterThan(50);
    expect(await turnsOfOthers(() => claims.list(reader, claimQuery.parse({ overlaps: "repo/**/b*", limit: 10_000 })))).toBeGreaterThan(50);
    expect((await claims.list(reader, claimQuery.parse({ overlaps: "repo/**/*1.ts", limit: 10_000 }))).claims).toHaveLength(1_000);
    await expect(ask("new", "repo/**/f9999.ts")).rejects.toMatchObject({ code: "claim.held", details: { holder: "h19" } });
    await place.elapse(4_000_000_000_000);
    await ask("newer", "repo/**");
    expect(await listed()).toMatchObject([{ resource: "repo/**", holder: "newer" }]);
  });
});
