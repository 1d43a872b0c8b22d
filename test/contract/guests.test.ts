import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type GuestParts, sweepGuests } from "../../src/acts/end-guest.ts";
import { configSchema } from "../../src/contract/config.ts";
import { GUEST_TTL_MS } from "../../src/contract/guests.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Access } from "../../src/records/access/access.ts";
import { Guests } from "../../src/records/access/guests.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { Claims } from "../../src/records/claims/claims.ts";
import { PLACES, type StorePlace } from "../stores.ts";

const newId = idSource(systemClock, systemRandom);

describe.each(PLACES)("guests on %s", (_name, make) => {
  let place: StorePlace;
  let access: Access;
  let parts: GuestParts;

  beforeEach(async () => {
    place = make();
    parts = await node();
  });
  afterEach(() => place.remove());

  async function node(): Promise<GuestParts> {
    const store = await place.open();
    const agents = new AgentRegistry(revisionWithoutFile(configSchema.parse({ agents: { main: {}, "codex-2": {} } })));
    access = new Access(store, agents, newId, systemRandom);
    return { store, guests: new Guests(store, access, agents), claims: new Claims(store, "n") };
  }

  const guest = (name: string): Caller => ({ ...OPERATOR, kind: "guest", name });
  const claim = (who: GuestParts, name: string, resource: string): Promise<unknown> =>
    who.claims.take(guest(name), { resource, ttl_ms: 600_000, mode: "exclusive", wait_ms: 0 });

  test("those who come at the same instant on several nodes get different names, by rising numbers", async () => {
    const nodes = [parts, await node(), await node()];
    const joined = await Promise.all(
      Array.from({ length: 12 }, (_, index) => (nodes[index % 3] as GuestParts).guests.join(OPERATOR, { client: "Codex" })),
    );
    // An agent of the config bears the second.
    expect(joined.map(({ name }) => name).toSorted()).toEqual(
      [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].map((number) => `codex-${number}`).toSorted(),
    );
    expect(new Set(joined.map(({ token }) => token)).size).toBe(12);
  });

  test("a silent guest is gone after its time, its token with it, and what it held under a number", async () => {
    const [one, named] = [
      await parts.guests.join(OPERATOR, { client: "x" }),
      await parts.guests.join(OPERATOR, { client: "x", name: "alice" }),
    ];
    await claim(parts, one.name, "a");
    await claim(parts, "alice", "b");
    await place.elapse(GUEST_TTL_MS - 5_000);
    await parts.guests.renew(guest("alice"));
    expect(await sweepGuests(parts)).toBe(0);
    await place.elapse(6_000);
    expect(await sweepGuests(parts)).toBe(1);
    expect(await (await node().then(() => access)).authenticate(one.token)).toBeUndefined();
    expect((await access.authenticate(named.token))?.caller).toMatchObject({ kind: "guest", name: "alice" });
    await expect(parts.guests.renew(guest(one.name))).rejects.toMatchObject({ code: "request.not_found" });
    const next = await parts.guests.join(OPERATOR, { client: "x" });
    // Mail for the first must never be the next one's.
    expect([one.name, next.name]).toEqual(["x-1", "x-2"]);
    await claim(parts, "alice", "a");
    await place.elapse(GUEST_TTL_MS + 1_000);
    await sweepGuests(parts);
    // She asked for her name, and may come back for what is hers.
    await expect(claim(parts, next.name, "b")).rejects.toMatchObject({ code: "claim.held", details: { holder: "alice" } });
  });

  test("after a time without any daemon everybody gets the time to say that he lives", async () => {
    const { name } = await parts.guests.join(OPERATOR, { client: "x" });
    await place.elapse(10 * GUEST_TTL_MS);
    await parts.guests.giveTime();
    expect(await sweepGuests(parts)).toBe(0);
    await parts.guests.renew(guest(name));
  });

  test("one whose token was revoked is gone, and is not let in again under its old token", async () => {
    const { name, id } = await parts.guests.join(OPERATOR, { client: "x" });
    await access.revoke(OPERATOR, id);
    expect(await sweepGuests(parts)).toBe(1);
    await expect(parts.guests.join(OPERATOR, { client: "x", was: { name, id } })).rejects.toMatchObject({ code: "request.forbidden" });
    expect((await parts.guests.join(OPERATOR, { client: "x" })).name).toBe("x-2");
  });

  test("a name with a token of its own, an agent's name and a reserved one are not given away", async () => {
    await access.create(OPERATOR, { scope: "guest:bob" });
    expect((await parts.guests.join(OPERATOR, { client: "x", name: "bob" })).name).toBe("bob-2");
    await expect(parts.guests.join(OPERATOR, { client: "x", name: "main" })).rejects.toMatchObject({ code: "request.malformed" });
    await expect(parts.guests.join(OPERATOR, { client: "x", name: "operator" })).rejects.toMatchObject({ code: "request.malformed" });
  });

  test("the nearest process counts, several of one program are told apart by their repository or not at all", async () => {
    const at = (repository: string) => ({ repository: `${repository}~00000000`, tops: ["/x"], prefix: "" });
    const join = async (process: string, repository: string): Promise<string> =>
      (await parts.guests.join(OPERATOR, { client: "x", process, workspace: at(repository) })).name;
    const [outer, inner, left, right] = [
      await join("h/1/1", "a"),
      await join("h/2/1", "a"),
      await join("h/3/1", "a"),
      await join("h/3/1", "b"),
    ];
    const find = (processes: string[], ...repositories: string[]) =>
      parts.guests.ofProcesses(
        processes,
        repositories.map((one) => `${one}~00000000`),
      );
    expect(await find(["h/9/9", "h/2/1", "h/1/1"])).toBe(inner);
    expect(await find(["h/1/1"])).toBe(outer);
    expect(await find(["h/1/2"])).toBeUndefined();
    expect([await find(["h/3/1"], "a"), await find(["h/3/1"], "b"), await find(["h/3/1"], "c"), await find(["h/3/1"], "a", "b")]).toEqual([
      left,
      right,
      undefined,
      undefined,
    ]);
    await parts.guests.noteSession("s", left);
    expect(await parts.guests.ofSession("s")).toBe(left);
    expect(await parts.guests.ofSession("t")).toBeUndefined();
  });
});
