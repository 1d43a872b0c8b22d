import type { TaskParts } from "../src/acts/tasks/task-parts.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { idSource, type NewId } from "../src/kernel/ids.ts";
import { systemRandom } from "../src/kernel/random.ts";
import { Pools } from "../src/records/pools/pools.ts";
import { KnownWorkflows } from "../src/records/workflows/known-workflows.ts";
import type { Store } from "../src/store/store.ts";

const NO_AGENTS: TaskParts["agents"] = {
  get current(): never {
    throw new Error("this test has no agents");
  },
};

/** For turns that are nobody's task, unless the test gives agents. */
export function taskParts(store: Store, newId: NewId = idSource(systemClock, systemRandom), agents = NO_AGENTS): TaskParts {
  return { store, newId, delivers: () => false, agents, pools: new Pools(store), workflows: new KnownWorkflows() };
}
