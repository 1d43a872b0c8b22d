import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PLACES, type StorePlace } from "../stores.ts";
import { FlowingHouse, step } from "./flowing-house.ts";

/** What templates make is stored: it must be something that both databases can hold. */
describe.each(PLACES)("what a workflow's templates make, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let house: FlowingHouse;
  beforeEach(async () => {
    place = makePlace();
    house = new FlowingHouse(await place.open());
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  test("a key of many wide characters names its run, one that is longer is refused", async () => {
    const definition = { steps: [step("a")], idempotency_key: "{{input.k}}" };
    const input = { k: "\u0001€".repeat(150) };
    const id = await house.start(definition, { input });
    expect(await house.start(definition, { input })).toBe(id);
    await expect(house.start(definition, { input: { k: "x".repeat(301) } })).rejects.toMatchObject({ code: "step.bad_template" });
  });

  test("a goal that cannot be stored fails its step, and nothing else", async () => {
    const steps = [
      step("nul", { goal: "do {{input.nul}}" }),
      step("half", { goal: "do {{input.half}}" }),
      step("sound", { goal: "do {{input.ok}}" }),
    ];
    const id = await house.start({ steps }, { input: { nul: "a\0b", half: "\ud800", ok: "$& {{item}}" } });
    await house.drain();
    expect(await house.states(id)).toEqual({ nul: "failed", half: "failed", sound: "completed" });
    expect(house.goals).toEqual(["do $& {{item}}"]);
  });
});
