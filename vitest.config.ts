import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

const shared = { pool: "threads" as const, isolate: false, testTimeout: 30_000, hookTimeout: 60_000 };
/** Most tests wait for processes, servers and clocks, so that there are more of them at once than a small machine has cores. */
const maxWorkers = Math.max(3, availableParallelism());

// `unit` is what `npm run check` runs: no PostgreSQL, no child processes. `full` is the rest, and needs the server of global-setup.
export default defineConfig({
  test: {
    maxWorkers,
    projects: [
      { test: { ...shared, name: "unit", include: ["src/**/*.test.ts", "test/*.test.ts"] } },
      { test: { ...shared, name: "full", include: ["test/*/**/*.test.ts"], globalSetup: ["test/global-setup.ts"] } },
    ],
  },
});
