import { expect, test } from "vitest";
import { Roster } from "./roster.ts";

test("knows what is there by its key, in the order in which it came, and nothing of what has gone", () => {
  const roster = new Roster<string, string>();
  for (const name of ["a", "b", "c"]) roster.set(name, name.toUpperCase());
  expect([roster.delete("a"), roster.delete("a"), roster.get("a"), roster.size]).toEqual([true, false, undefined, 2]);
  roster.set("d", "D");
  roster.set("b", "again");
  expect([...roster.values()]).toEqual(["again", "C", "D"]);
  expect([roster.get("b"), roster.get("d"), roster.size]).toEqual(["again", "D", 3]);
});

test("is the same as a Map, whatever comes and goes", () => {
  const [roster, map] = [new Roster<number, number>(), new Map<number, number>()];
  for (let step = 0, key = 1; step < 5_000; step++) {
    key = (key * 48_271) % 2_147_483_647;
    const [which, adds] = [key % 50, key % 3 > 0];
    if (adds) [roster, map].forEach((one) => void one.set(which, step));
    else expect(roster.delete(which)).toBe(map.delete(which));
    expect(roster.get(which)).toBe(map.get(which));
  }
  expect([roster.size, [...roster.values()]]).toEqual([map.size, [...map.values()]]);
});
