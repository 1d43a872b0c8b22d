import type { PlantedBug } from "./bugs.ts";

const WATCH = "src/store/work-watch.ts";
const DISPATCHER = "src/drivers/dispatch/dispatcher.ts";
const UPKEEP = "src/drivers/dispatch/upkeep.ts";
const REAPING = "src/store/reap-work.ts";
const HINTS = "src/store/postgres/hints.ts";
const hints = { tests: ["test/contract/work-hints.test.ts"] };
const pulse = { tests: ["test/contract/pulse.test.ts"], filter: "SQLite" };

/** Bugs in what a node costs that has nothing to do, and in what nodes tell each other. */
export const IDLE_BUGS: readonly PlantedBug[] = [
  {
    name: "idle: every node is woken for work that one can take",
    file: WATCH,
    from: 'this.#isTaken(kind, tenant) ? "here" : "everywhere"',
    to: '"everywhere"',
    ...hints,
  },
  {
    name: "idle: a node that became full tells nobody of what is left",
    file: DISPATCHER,
    from: "if (items.length > 0 && this.#leavesSome()) queue.watch.offer();",
    to: "",
    ...hints,
  },
  {
    name: "idle: work of an agent that belongs elsewhere is kept to oneself",
    file: DISPATCHER,
    from: "return !without.includes(tenant) && !(tenant !== null && elsewhere.has(tenant));",
    to: "return !without.includes(tenant);",
    ...hints,
  },
  {
    name: "idle: what a dead node has left is seen and not told",
    file: WATCH,
    from: 'if (ready === 1) this.#engine.wake.hint("work");',
    to: "",
    ...hints,
  },
  {
    name: "idle: what was parked for a moment waits for the next look",
    file: WATCH,
    from: "if (this.#takers.size > 0 || this.#waiting > 0) this.#look().catch(() => {});",
    to: "",
    ...hints,
  },
  {
    name: "idle: events are told where nobody follows them",
    file: HINTS,
    from: 'if (topic === "ledger" && performance.now() - this.#heardAt > HEARD_FOR_MS) return;',
    to: "",
    ...hints,
  },
  {
    name: "idle: what is handed back is told to nobody",
    file: REAPING,
    from: "where state = 'running' and ${claimedBy(claims)} returning ${TURN}`;\n  tellOf(watch, tx, rows);",
    to: "where state = 'running' and ${claimedBy(claims)} returning ${TURN}`;\n  watch.tell(tx);",
    ...hints,
  },
  {
    name: "idle: what is due on a node that is full waits for the next look of another",
    file: REAPING,
    from: "where id ${engine.dialect.amongFirst(due)} returning ${TURN}`;\n  tellOf(watch, tx, rows);",
    to: 'where id ${engine.dialect.amongFirst(due)} returning ${TURN}`;\n  if (rows.length > 0 && watch) tx.hint("work", "here");',
    ...hints,
  },
  {
    name: "idle: whoever listens again has missed what was said of accounts, mail and configs",
    file: HINTS,
    from: "for (const topic of WAKE_TOPICS) this.#wake.hint(topic);",
    to: 'for (const topic of WAKE_TOPICS) if (topic === "ledger" || topic === "work") this.#wake.hint(topic);',
    ...hints,
  },
  {
    name: "idle: a chore is done whether or not it is due",
    file: UPKEEP,
    from: "if (due.has(chore) || this.#isTime(chore)) await",
    to: "await",
    ...pulse,
  },
  {
    name: "idle: every node seals every second",
    file: "src/store/sealer.ts",
    from: "<= now_ms() - ${APART_MS}`",
    to: "<= now_ms() - ${0 * APART_MS}`",
    ...pulse,
  },
];
