import fc from "fast-check";
import { expect, test } from "vitest";
import type { Address } from "../src/deciders/routing/address.ts";
import { DEFAULT_SCOPES, SessionKeys, sessionKey } from "../src/deciders/routing/session-key.ts";
import { SEED } from "./models/seed.ts";

type Place = Omit<Address, "guild" | "roles">;
const dm: Address = { platform: "telegram", account: "default", guild: null, chat: "7", topic: null, chatType: "dm", peer: "7", roles: [] };

test(`two people share a conversation only if they are linked, whatever they are called (seed ${SEED})`, () => {
  // Names that look like ids, ids that look like names, and few of them, so that they meet.
  const peer = fc.constantFrom("a", "b", "b:a", "a%3Ab");
  const name = fc.constantFrom("a", "a:a", "a:b", "a:b:a", "a%3Aa", "a%253Aa", "b%3Aa");
  const person = fc.record({ platform: fc.constantFrom("a", "b", "a:b", "a%3Ab"), peer });
  const links = fc.uniqueArray(fc.record({ name, platform: fc.constantFrom("a", "b"), peer }), {
    selector: ({ platform, peer }) => `${platform}:${peer}`,
    maxLength: 5,
  });
  fc.assert(
    fc.property(links, person, person, (linked, one, other) => {
      const identities: Record<string, string[]> = {};
      for (const { name, platform, peer } of linked) identities[name] = [...(identities[name] ?? []), `${platform}:${peer}`];
      const config = { agents: {}, identities, dm_scope: "per-peer" as const, group_scope: undefined };
      const nameOf = (who: typeof one) => linked.find((link) => link.platform === who.platform && link.peer === who.peer)?.name;
      const same = one.platform === other.platform && one.peer === other.peer;
      const merged = nameOf(one) !== undefined && nameOf(one) === nameOf(other);
      const key = (who: typeof one) => new SessionKeys(config).keyFor("main", { ...dm, ...who });
      expect(key(one) === key(other)).toBe(same || merged);
    }),
    { seed: SEED, numRuns: 5_000 },
  );
});

test(`keys of different kinds never meet, whatever ids are made of (seed ${SEED})`, () => {
  const word = fc.constantFrom("a", "dm", "group", "channel", "topic", "peer", "main", "default", "a:b", "%3A");
  const place: fc.Arbitrary<Place> = fc.record({
    platform: word,
    account: word,
    chat: word,
    topic: fc.option(word),
    peer: word,
    chatType: fc.constantFrom("dm" as const, "group" as const, "channel" as const),
  });
  const dmScope = fc.constantFrom("per-channel-peer" as const, "per-account-channel-peer" as const);
  const groupScope = fc.constantFrom("chat" as const, "per-peer" as const);
  const scopes = fc.record({ dmScope, groupScope });
  const toldApart = (at: Place, how: { dmScope: string; groupScope: string }) =>
    at.chatType === "dm"
      ? [at.platform, how.dmScope === "per-channel-peer" ? null : at.account, "dm", at.peer]
      : [at.platform, at.account, at.chatType, at.chat, at.topic, how.groupScope === "per-peer" ? ["peer", at.peer] : null];
  fc.assert(
    fc.property(place, place, scopes, scopes, (one, other, how, otherHow) => {
      const keyOf = (at: typeof one, by: typeof how) => sessionKey("a", { ...dm, ...at }, { ...DEFAULT_SCOPES, ...by });
      const same = JSON.stringify(toldApart(one, how)) === JSON.stringify(toldApart(other, otherHow));
      expect(keyOf(one, how) === keyOf(other, otherHow)).toBe(same);
    }),
    { seed: SEED, numRuns: 20_000 },
  );
});
