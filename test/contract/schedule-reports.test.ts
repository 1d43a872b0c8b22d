import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scheduleTool } from "../../src/abilities/tools/schedule/schedule-tool.ts";
import { runJobIn } from "../../src/acts/schedules/manage-jobs.ts";
import type { ScheduleParts } from "../../src/acts/schedules/schedule-parts.ts";
import { OPERATOR } from "../../src/kernel/caller.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { Failure } from "../../src/kernel/failure.ts";
import { Schedules } from "../../src/records/schedules/schedules.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { ChannelHouse } from "./channel-house.ts";
import { newId } from "./sessions-place.ts";
import { call } from "./turning-house.ts";

describe.each(PLACES)("what a job comes to, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: ChannelHouse;
  let parts: ScheduleParts;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
    house = new ChannelHouse(store, { channels: { plain: { allow: ["7"] } } });
    const delivers = ({ platform }: { readonly platform: string }): boolean => platform === "plain";
    parts = {
      tasks: { ...taskParts(store, newId, house.agents), delivers },
      schedules: new Schedules(store, newId),
      reached: noCrashPoints,
    };
    await parts.schedules.cron();
    house.tools = [scheduleTool(parts)];
    house.play = (request) => {
      const last = request.messages.at(-1);
      if (last?.role === "tool") return "I will";
      return last?.text.includes("<SCHEDULED job tea")
        ? "It is tea time."
        : { calls: [call("schedule", { action: "create", name: "tea", cron: "0 16 * * *", goal: "say that it is tea time" })] };
    };
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const runTea = async (): Promise<void> => {
    const [job] = await parts.schedules.list("main");
    await store.transact("run job", (tx) => runJobIn(parts, tx, OPERATOR, job as never), "locked");
    await house.take();
    await house.deliver();
  };
  const sent = (): (string | undefined)[] => house.platform.sent.map(({ part, place: { chat } }) => `${chat}: ${part?.plain}`);

  test("is said in the conversation in which it was made, once, also when its turn fails", async () => {
    await house.hear("m1", "remind me of tea");
    await house.take();
    await runTea();
    expect(sent()).toEqual(["7: I will", "7: It is tea time."]);
    house.play = () => {
      throw new Failure("budget.exceeded", "nothing is left for today");
    };
    await runTea();
    expect(sent().slice(2)).toEqual(["7: The job tea has failed: nothing is left for today"]);
  });

  test("is said to nobody where it was not made on a channel", async () => {
    await house.send("remind me of tea", { platform: "api" });
    await house.take();
    await runTea();
    expect(sent()).toEqual([]);
  });
});
