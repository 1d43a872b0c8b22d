import fc from "fast-check";
import { expect, test } from "vitest";
import { roomFor } from "./slots.ts";

const held = (slots: Readonly<Record<string, number>>): string[] =>
  Object.entries(slots).flatMap(([tenant, count]) => Array<string>(count).fill(tenant));

/** Everybody always wants more, and the first who may gets all that is given at once. */
function fill(limit: number, tenants: readonly string[]): Record<string, number> {
  const slots: Record<string, number> = Object.fromEntries(tenants.map((tenant) => [tenant, 0]));
  while (true) {
    const { items, without } = roomFor(limit, held(slots), true);
    const next = items > 0 ? tenants.find((tenant) => !without.includes(tenant)) : undefined;
    if (next === undefined) return slots;
    slots[next] = (slots[next] as number) + items;
  }
}

test("one alone gets three quarters, and leaves the rest for whoever comes", () => {
  expect(fill(64, ["a"])).toEqual({ a: 48 });
  expect(fill(4, ["a"])).toEqual({ a: 3 });
  expect(fill(2, ["a"])).toEqual({ a: 1 });
  expect(fill(1, ["a"])).toEqual({ a: 1 });
});

test("where there is nobody else, it gets all", () => {
  expect(roomFor(64, [], false)).toEqual({ items: 64, without: [] });
  expect(roomFor(64, held({ a: 64 }), false)).toEqual({ items: 0, without: [] });
});

test("a lower limit than what runs takes nothing", () => {
  expect(roomFor(2, held({ a: 3 }), true)).toEqual({ items: 0, without: [] });
});

test("whoever has no slot gets one while one is free, and nobody ever has more than three for each that is free", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 200 }), fc.array(fc.nat(9), { maxLength: 400 }), (limit, wants) => {
      const slots: Record<string, number> = {};
      for (const want of wants) {
        const running = held(slots);
        const { items, without } = roomFor(limit, running, true);
        const tenant = `t${want}`;
        if (items === 0) {
          expect(running).toHaveLength(limit);
          return;
        }
        const mine = slots[tenant] ?? 0;
        if (mine === 0) expect(without).not.toContain(tenant);
        if (without.includes(tenant)) continue;
        slots[tenant] = mine + items;
        const free = limit - held(slots).length;
        expect(free).toBeGreaterThanOrEqual(0);
        expect(slots[tenant] === 1 || (slots[tenant] as number) <= 3 * free).toBe(true);
      }
    }),
  );
});
