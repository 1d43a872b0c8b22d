import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/abilities/tools/tool.ts";
import { seededRandom } from "../../src/kernel/random.ts";
import { readContext } from "../../src/records/journal/contexts.ts";
import type { RunInput } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { KnownTurns } from "../../src/turns/known-turns.ts";
import { readPastTurns } from "../../src/turns/past-turns.ts";
import { toldAt } from "../../src/turns/told-at.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { call, TurningHouse, wordsIn } from "./turning-house.ts";

const EVERYTHING = { after: 0, upto: Number.MAX_SAFE_INTEGER, inside: null, withTools: true };

describe.each(PLACES)("what a node knows of past turns, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TurningHouse;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TurningHouse(store, { owners: ["telegram:ann"] });
    const run = async ({ size }: { size: number }) => ({ output: "o".repeat(size), labels: size > 500 ? (["external"] as const) : [] });
    house.tools = [defineTool({ name: "todo", description: "d", parameters: z.object({ size: z.number() }), effect: "pure", run })];
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const say = async (text: string, from = {}) => {
    const { runId } = await house.send(text, from);
    await house.take();
    return runId;
  };
  const exact = async (runId: string) => (await toldAt(store.read, await house.input(runId), null))?.exact;

  test("is what there is to read, whoever of several nodes takes the turns, whatever was done in them", async () => {
    const seed = `seed ${Math.floor(Math.random() * 2 ** 31)}`;
    const drawn = seededRandom(Number(seed.slice(5)));
    const random = (): number => drawn.fraction();
    const nodes = [new KnownTurns(), new KnownTurns()];
    const group = { chat: "-5", chat_type: "group" as const };
    house.play = ({ messages }) => {
      const last = messages.at(-1);
      if (last?.role !== "user" || random() < 0.4) return random() < 0.1 ? "" : `answer ${random()}`;
      return { text: "let me see", calls: [call("todo", { size: Math.floor(random() * 1_000) })] };
    };
    const epochs = new Set<number>();
    for (let turn = 0; turn < 40; turn++) {
      house.past = nodes[Math.floor(random() * 2)] as KnownTurns;
      if (turn === 20 || random() < 0.05) await house.send("/new", { ...group, peer: "ann" });
      if (random() < 0.1)
        house.reconfigure({
          owners: ["telegram:ann"],
          agents: { main: { model: "test/model", tools: random() < 0.5 ? { deny: ["todo"] } : {} } },
        });
      const runId = await say(`words ${random()}`, { ...group, peer: random() < 0.5 ? "ann" : "bob" });
      expect(await exact(runId), `turn ${turn}, ${seed}`).toBe(true);
      const run = await house.input(runId);
      epochs.add(run.epoch);
      const known = await house.past.read(store.read, run, EVERYTHING);
      expect(known, seed).toEqual(await readPastTurns(store.read, run, EVERYTHING));
      const carried = (await readContext(store.read, runId))?.labels ?? [];
      const before = known.turns.slice(0, -1).flatMap(({ labels }) => labels);
      expect(new Set(carried), seed).toEqual(new Set(before));
    }
    expect(epochs.size, seed).toBeGreaterThan(1);
  });

  test("is read once: the next turn reads only what was said since", async () => {
    for (const words of ["one", "two", "three"]) await say(words);
    const all = vi.spyOn(store.read, "all");
    house.play = () => "yes";
    await say("four");
    const read = all.mock.results.filter((_result, index) => all.mock.calls[index]?.[0].join("").includes("t.position"));
    const rows = await Promise.all(read.map(({ value }) => value as Promise<unknown[]>));
    all.mockRestore();
    expect(wordsIn(house.asked.at(-1) as never)).toHaveLength(7);
    expect(rows.map(({ length }) => length)).toEqual([2]);
  });

  test("is not told in a conversation that was begun anew, nor to anybody else", async () => {
    await say("my number is 7");
    await say("and yours?");
    await house.send("/new");
    await say("hello");
    expect(wordsIn(house.asked.at(-1) as never)).toEqual(["user: hello"]);
    await say("hello", { chat: "8", peer: "8" });
    expect(wordsIn(house.asked.at(-1) as never)).toEqual(["user: hello"]);
  });

  test("gives way to reading all again where there is more than is read at once", async () => {
    const long = "x".repeat(400_000);
    house.play = () => "yes";
    const known = new KnownTurns();
    const first = await house.input(await say(long));
    expect((await known.read(store.read, first, EVERYTHING)).turns).toHaveLength(1);
    for (let turn = 0; turn < 4; turn++) await say(`${turn} ${long}`);
    const runId = await say("and now?");
    const whole = await readPastTurns(store.read, first, EVERYTHING);
    expect(whole.cut).toBe(true);
    expect(await known.read(store.read, first, EVERYTHING)).toEqual(whole);
    expect(await exact(runId)).toBe(true);
  });

  test("is bounded: what was not asked for longest is read again", async () => {
    house.play = () => "yes";
    const known = new KnownTurns();
    const inputs: RunInput[] = [];
    for (let chat = 0; chat < 20; chat++) {
      inputs.push(await house.input(await say("x".repeat(450_000), { chat: `${chat}`, peer: `${chat}` })));
      await known.read(store.read, inputs.at(-1) as RunInput, EVERYTHING);
    }
    const all = vi.spyOn(store.read, "all");
    for (const input of inputs.toReversed()) await known.read(store.read, input, EVERYTHING);
    const read = all.mock.results.filter((_result, index) => all.mock.calls[index]?.[0].join("").includes("t.position"));
    const rows = await Promise.all(read.map(({ value }) => value as Promise<unknown[]>));
    all.mockRestore();
    expect(rows.map(({ length }) => length).filter((count) => count === 0)).toHaveLength(17);
  });
});
