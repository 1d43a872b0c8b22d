/**
 * A process that runs programs in sandboxes, to be killed or to be another user: makes a home, tells what came of a command, or that it runs.
 * `sandbox-worker <home> <run|stay> <command>`
 */
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { KeptOutput } from "../../src/records/workspaces/sandbox/kept-output.ts";
import { SANDBOX_LIMITS } from "../../src/records/workspaces/sandbox/sandbox.ts";
import { Sandboxes } from "../../src/records/workspaces/sandbox/sandboxes.ts";
import { Workspaces } from "../../src/records/workspaces/workspaces.ts";

const [home = "", how, command = ""] = process.argv.slice(2);
const newId = idSource(systemClock, systemRandom);
const workspaces = await Workspaces.of(home, { clock: systemClock, newId });
const sandboxes = new Sandboxes(workspaces, { newId, node: process.execPath, limits: { ...SANDBOX_LIMITS, processes: 64 } });
const sandbox = { kind: "auto" as const, network: undefined };
const owner = { id: "main", workspaceScope: "agent" as const, sharedPaths: [], env: {}, sandbox };
const state = await sandboxes.state();
if (!state.works) {
  console.log(JSON.stringify(state));
} else if (how === "stay") {
  const plan = await sandboxes.plan(owner, null, { configFile: null }, "guarded");
  await sandboxes.start(plan, command, new KeptOutput(0, 1_000), (text) => console.log(text.trim()));
} else {
  const plan = await sandboxes.plan(owner, null, { configFile: null }, "none");
  const signal = new AbortController().signal;
  console.log(JSON.stringify(await sandboxes.run(plan, { command, signal, timeoutMs: 20_000 })));
  await sandboxes.close();
}
