import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { wakeHeldTurns } from "../../src/acts/hold-turn.ts";
import { TURN_WORK } from "../../src/acts/work-kinds.ts";
import { Dispatcher } from "../../src/drivers/dispatch/dispatcher.ts";
import { takeTurn } from "../../src/drivers/dispatch/take-turn.ts";
import type { Model } from "../../src/kernel/model.ts";
import { readRun } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { turnParts } from "../turn-parts.ts";
import { newId, TalkingHouse } from "./sessions-place.ts";

const quiet = { info: () => {}, warn: () => {}, error: () => {} };
const CONFIG = { owners: ["telegram:7"], agents: { main: { model: "test/patient" } } };

/** Answers only when it is told to; says when it was asked and when it was stopped. */
class Patient implements Model {
  readonly name = "test/patient";
  readonly scripted = true;
  readonly asked = Promise.withResolvers<void>();
  readonly aborted = Promise.withResolvers<void>();
  readonly answer = Promise.withResolvers<string>();
  /** Goes on as if nothing had happened, as a provider may. */
  readonly deaf: boolean;

  constructor(deaf = false) {
    this.deaf = deaf;
  }

  async *stream(_request: unknown, signal: AbortSignal): ReturnType<Model["stream"]> {
    signal.addEventListener("abort", () => this.aborted.resolve(), { once: true });
    this.asked.resolve();
    const text = await (this.deaf ? this.answer.promise : Promise.race([this.answer.promise, this.aborted.promise.then(() => "")]));
    yield { kind: "text", text };
  }
}

describe.each(PLACES)("a turn that is being answered on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: TalkingHouse;
  let dispatcher: Dispatcher | undefined;
  const folder = mkdtempSync(join(tmpdir(), "guildhall-stop-"));

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new TalkingHouse(store, CONFIG);
  });
  afterEach(async () => {
    await dispatcher?.stop(0);
    await place.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  function answerWith(model: Model, leaseMs: number): void {
    const { agents, running } = house;
    const models = modelRegistry([{ name: "test", model: () => model, models: () => [] }]);
    const turn = takeTurn({ ...turnParts(store, newId, folder), agents, models, running });
    dispatcher = new Dispatcher({
      queue: store.queue,
      owner: "here",
      handlers: { [TURN_WORK]: turn },
      log: quiet,
      limit: () => 4,
      leaseMs,
    });
    dispatcher.start();
  }

  test("is aborted as soon as it is stopped here, long before its claim is renewed", async () => {
    const model = new Patient();
    answerWith(model, 600_000);
    const { runId } = await house.send("hello");
    await model.asked.promise;
    await house.ask("/stop");
    await model.aborted.promise;
    expect(await readRun(store.read, runId)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
  });

  test("is aborted when its claim is renewed next, when another node stopped it", async () => {
    const model = new Patient();
    answerWith(model, 600);
    const { runId } = await house.send("hello");
    await model.asked.promise;
    await new TalkingHouse(await place.open(), CONFIG).ask("/stop", { id: "stop" });
    await model.aborted.promise;
    expect(await readRun(store.read, runId)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
  });

  test("that waits for a paused agent is stopped too, and is not taken up when the agent goes on", async () => {
    house.reconfigure({ ...CONFIG, agents: { main: { model: "test/patient", state: "paused" } } });
    const model = new Patient();
    answerWith(model, 600_000);
    const { runId } = await house.send("hello");
    while ((await readRun(store.read, runId))?.status !== "waiting") await sleep(10);
    expect(await house.ask("/status")).toContain("agent: main (paused: the config says `state: paused`)");
    expect(await house.ask("/stop")).toBe("Stopped.");
    house.reconfigure(CONFIG);
    await wakeHeldTurns(store, () => false);
    const next = await house.send("again");
    await model.asked.promise;
    expect(await readRun(store.read, runId)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
    expect(await readRun(store.read, next.runId)).toMatchObject({ status: "running" });
    expect(await store.read.all`select 1 from held_turns`).toEqual([]);
  });

  test("commits nothing after it was stopped, also when its model does not listen", async () => {
    const model = new Patient(true);
    answerWith(model, 600_000);
    const { runId } = await house.send("hello");
    await model.asked.promise;
    await house.ask("/stop");
    model.answer.resolve("all the same");
    await dispatcher?.stop(5_000);
    dispatcher = undefined;
    expect(await readRun(store.read, runId)).toMatchObject({ status: "failed", reply: null, error: { code: "run.stopped" } });
    expect(await store.read.all`select 1 from transcript`).toEqual([]);
    expect(await house.events(runId)).toEqual(["message.admitted", "route.decided", "turn.started", "turn.failed"]);
  });
});
