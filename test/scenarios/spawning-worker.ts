import { cancelTask } from "../../src/acts/tasks/cancel-task.ts";
import { openTaskIn } from "../../src/acts/tasks/open-task.ts";
import { configSchema } from "../../src/contract/config.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { asFailure, Failure } from "../../src/kernel/failure.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { countOpenBelow } from "../../src/records/tasks/task-rows.ts";
import { openStore } from "../../src/store/store.ts";
import { taskParts } from "../task-parts.ts";

/** A node of its own that opens tasks under given turns as fast as it can: `node spawning-worker.ts <store> <config> <runs> <spawns> [cancels]`. */
const [location, config, runs, spawns, cancels] = process.argv.slice(2) as [string, string, string, string, string | undefined];
const store = await openStore(location);
const newId = idSource(systemClock, systemRandom);
const parts = taskParts(store, newId, new AgentRegistry(revisionWithoutFile(configSchema.parse(JSON.parse(config)))));
const outcomes: Record<string, Record<string, number>> = {};
let most = 0;

async function spawn(run: string): Promise<void> {
  const counted: Record<string, number> = outcomes[run] ?? {};
  outcomes[run] = counted;
  const count = (outcome: string): void => {
    counted[outcome] = (counted[outcome] ?? 0) + 1;
  };
  try {
    const opened = await store.transact(
      "spawn",
      async (tx) => {
        const made = await openTaskIn(parts, tx, { kind: "child", agent: "main", from: "main", parent: { run }, goal: "x" });
        most = Math.max(most, await countOpenBelow(tx, run));
        return made;
      },
      "locked",
    );
    count("refused" in opened ? opened.refused.code : "opened");
    if ("id" in opened && cancels) await cancelTask(parts, opened.id, "operator");
  } catch (error) {
    count(error instanceof Failure ? error.code : asFailure(error).message);
  }
}

// Both begin at the same moment, as far as two processes can.
process.stdout.write("ready\n");
await new Promise((resolve) => process.stdin.once("data", resolve));
await Promise.all(Array.from({ length: Number(spawns) }, (_, index) => spawn(runs.split(",")[index % runs.split(",").length] as string)));
process.stdout.write(`${JSON.stringify({ outcomes, most })}\n`);
await store.close();
process.exit(0);
