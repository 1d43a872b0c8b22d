import type { PlantedBug } from "./bugs.ts";

const DISPATCHER = "src/drivers/dispatch/dispatcher.ts";
const CLAIMS = "src/drivers/dispatch/kept-claims.ts";
const tests = ["test/dispatch.test.ts"];

/** Bugs in how a node gives up what it cannot say is still its own. */
export const SILENCE_BUGS: readonly PlantedBug[] = [
  {
    name: "a node that is cut off from the database goes on with turns that others have taken over",
    file: CLAIMS,
    from: "{ id: item.id });\n      lost.abort();",
    to: "{ id: item.id });",
    tests,
  },
  {
    name: "a turn is given up a lease after it was begun, however often its node was heard of",
    file: CLAIMS,
    from: "claim.mineUntil = Math.max(claim.mineUntil, asked + this.#leaseMs);",
    to: "claim.mineUntil = Math.max(claim.mineUntil, asked);",
    tests,
  },
  {
    name: "work is given up at the first silence",
    file: CLAIMS,
    from: "const soon = performance.now() + this.#leaseMs * SILENCE;",
    to: "const soon = performance.now() + this.#leaseMs;",
    tests,
  },
  {
    name: "a claim counts from when its answer came, however long that took",
    file: DISPATCHER,
    from: "mineUntil: asked + this.#options.leaseMs",
    to: "mineUntil: performance.now() + 0 * asked + this.#options.leaseMs",
    tests,
  },
  {
    name: "one claim that a transaction holds keeps all others from being renewed",
    file: CLAIMS,
    from: 'await this.#renewed(held, "skip")',
    to: 'await this.#renewed(held, "wait")',
    tests: ["test/contract/kept-claims.test.ts"],
  },
  {
    name: "a claim that a transaction holds is taken for lost",
    file: CLAIMS,
    from: 'await this.#renewed(unanswered, "wait")',
    to: "unanswered",
    tests: ["test/contract/kept-claims.test.ts"],
  },
  {
    name: "what was given up is claimed on for as long as it takes to end",
    file: CLAIMS,
    from: ".filter(({ lost }) => !lost.signal.aborted);",
    to: ";",
    tests,
  },
];
