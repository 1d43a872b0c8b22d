import type { PlantedBug } from "./bugs.ts";

const overHttp = { tests: ["test/chaos/api.test.ts"], filter: "sqlite" };

/** Bugs that show only to clients of daemons that die and come back. */
export const API_BUGS: readonly PlantedBug[] = [
  {
    name: "over HTTP, If-Match is read and forgotten",
    file: "src/edges/api/preconditions.ts",
    from: "return { ifVersion: Number(version) };",
    to: "return {};",
    ...overHttp,
  },
  {
    name: "over HTTP, writes are acknowledged while their commit is still ahead",
    file: "src/store/sqlite/group-commit.ts",
    from: '      this.#options.reached("store.commit.before");\n      committing = true;',
    to: '      this.#acknowledge(taken);\n      await nextTick();\n      this.#options.reached("store.commit.before");\n      committing = true;',
    ...overHttp,
  },
  {
    name: "over HTTP, a watcher that comes back misses an event",
    file: "src/edges/api/pools-routes.ts",
    from: "firstAfter(resumed, undefined)",
    to: "firstAfter(resumed, undefined) + 1",
    ...overHttp,
  },
];
