import { expect, inject, test } from "vitest";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { nodesChaos } from "./nodes-chaos.ts";
import { checkAsked, checkTurnOrder } from "./nodes-check.ts";
import { fanOut } from "./nodes-fan-out.ts";

/** The short form of `npm run chaos -- nodes`. */
test("S1 S2 S3 S4 E2 E3 E4 L7 W4 W6: three nodes under load, killed, stopped, cut off, and their PostgreSQL crashed: everything is answered in order, nothing twice", {
  timeout: 240_000,
}, async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`nodes chaos: seed ${seed}`);
  const faults = { kill: 1, pause: 1, partition: 1, "server crash": 1 };
  const report = await nodesChaos({ faults, seed, file: null, resume: false, pace: 3, progress: () => {} });
  expect(report.problems, `seed ${seed}`).toEqual([]);
  expect(report.done).toEqual(faults);
  const {
    acknowledged = 0,
    said = 0,
    answered = 0,
    "given up, as recorded": givenUp = 0,
    "failed, and told so": failed = 0,
  } = report.counts;
  expect(acknowledged).toBeGreaterThan(0);
  expect(answered + givenUp + failed).toBe(said);
});

test("W2 W6: a workflow fans out over three nodes while the one that was asked for it is killed: it completes, each branch once", {
  timeout: 120_000,
}, async () => {
  const report = await fanOut(18, { url: inject("postgresUrl") });
  expect(report.problems, JSON.stringify(report)).toEqual([]);
  expect(report.counts.completed).toBe(1);
});

test("the checks of the nodes find turns of one conversation that overlap, that come again, and that two nodes ask for", () => {
  let seq = 0;
  const event = (type: LedgerEvent["type"], run: string, attempt = 1): LedgerEvent => ({
    ...{ seq: ++seq, at: 0, type, actor: "main", causedBy: null, subject: ["run", run], data: { attempt } },
  });
  const runs = new Map(["a", "b"].map((id) => [id, { session: "one" }]));
  const order = (...events: LedgerEvent[]): string => checkTurnOrder(events, runs).problems.join("; ");
  expect(order(event("turn.started", "a"), event("turn.started", "a", 2), event("turn.completed", "a"), event("turn.started", "b"))).toBe(
    "",
  );
  expect(order(event("turn.started", "a"), event("turn.started", "b"))).toContain("b began in one while a was not over");
  expect(order(event("turn.started", "a"), event("turn.completed", "a"), event("turn.started", "a", 2))).toContain(
    "began again after its end",
  );
  expect(order(event("turn.completed", "a"), event("turn.completed", "a"))).toContain("ended twice");

  const asked = (node: string, began: number, ended: number) => ({ node, message: "go g1 of 0", round: 0, began, ended });
  const two = [asked("north", 0, 10_000), asked("east", 9_000, 9_500)];
  const fault = { kind: "partition" as const, node: "north", how: "", began: 5_000, ended: 8_500 };
  expect(checkAsked({ faults: [], said: [] }, two).problems).toHaveLength(1);
  expect(checkAsked({ faults: [{ ...fault, node: "west" }], said: [] }, two).problems).toHaveLength(1);
  const explained = checkAsked({ faults: [fault], said: [] }, two);
  expect([explained.problems, explained.counts]).toEqual([[], { "asked by an owner that was overtaken": 1 }]);
  expect(checkAsked({ faults: [], said: [] }, [asked("north", 0, 10), asked("east", 10, 20)]).problems).toEqual([]);
});
