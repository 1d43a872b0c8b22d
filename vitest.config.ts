import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { NO_REAL_MODELS } from "./test/no-real-models.ts";

const shared = {
  env: { ...NO_REAL_MODELS },
  pool: "threads" as const,
  isolate: false,
  testTimeout: 30_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 15_000 } },
};
/** Most tests wait for processes, servers and clocks, so that there are more of them at once than a small machine has cores. */
const maxWorkers = Math.max(3, availableParallelism());

const servers = ["test/global-setup.ts"];

// `unit` is what `npm run check` runs: no PostgreSQL, no child processes. `full` is the rest, and needs the server of global-setup.
// `chaos` comes after it, two files at a time: they wait much, and what they kill must have had the time to get somewhere.
export default defineConfig({
  test: {
    maxWorkers,
    projects: [
      { test: { ...shared, name: "unit", include: ["src/**/*.test.ts", "test/*.test.ts"] } },
      { test: { ...shared, name: "full", include: ["test/*/**/*.test.ts"], exclude: ["test/chaos/**"], globalSetup: servers } },
      {
        test: {
          ...shared,
          name: "chaos",
          include: ["test/chaos/**/*.test.ts"],
          globalSetup: servers,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
