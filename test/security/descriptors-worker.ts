import { linkSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { WORKSPACE_LIMITS } from "../../src/records/workspaces/roots.ts";
import { Workspaces } from "../../src/records/workspaces/workspaces.ts";

/** Counts the descriptors of a process of its own before and after every kind of verb has succeeded and failed many times. */
const [home = ""] = process.argv.slice(2);
const limits = { ...WORKSPACE_LIMITS, fileBytes: 1_000, walkEntries: 20, listEntries: 20 };
const workspaces = await Workspaces.of(home, { clock: systemClock, newId: idSource(systemClock, systemRandom), limits });
const sharedPaths = [
  { path: "docs", mode: "ro" as const },
  { path: "agents", mode: "rw" as const, name: "bad" },
  { path: "nowhere", mode: "rw" as const },
];
const workspace = workspaces.workspace({ id: "alice", workspaceScope: "agent", sharedPaths }, null, { configFile: null });
await workspace.list();
const inside = join(home, "agents/alice/workspace");
mkdirSync(join(home, "docs"));
writeFileSync(join(home, "docs/file"), "");
writeFileSync(join(home, "outside"), "canary");
symlinkSync(join(home, "outside"), join(inside, "link"));
symlinkSync(home, join(inside, "folder-link"));
linkSync(join(home, "outside"), join(inside, "hard"));
writeFileSync(join(inside, "large"), "x".repeat(2_000));
for (let index = 0; index < 30; index++) await workspace.write(`many/${index}`, "");

const verbs: readonly (() => Promise<unknown>)[] = [
  ...[
    "a/b",
    "link",
    "link/x",
    "folder-link/outside",
    "hard",
    "large",
    "many",
    "missing",
    "large/x",
    "shared/docs/file",
    "shared/bad/x",
    "shared/nowhere/x",
    "../x",
  ].flatMap((path) => [
    () => workspace.read(path),
    () => workspace.write(path, "y"),
    () => workspace.list(path),
    () => workspace.stat(path),
    () => workspace.makeDirectory(`${path}/z`),
    () => workspace.rename(path, "many/0"),
    () => workspace.walk(path, async ({ read }) => (await read().catch(() => undefined)) !== undefined),
  ]),
  () => workspace.write("large", "x".repeat(2_000)),
  () => workspace.remove("many", { recursive: true }),
  () => workspace.remove("a", { recursive: true }),
];
const count = (): number => readdirSync("/proc/self/fd").length;
let failed = 0;
const run = async (): Promise<void> => {
  for (const verb of verbs)
    await verb().catch(() => {
      failed++;
    });
};
await run();
const before = count();
for (let round = 0; round < 10; round++) await Promise.all([run(), run()]);
console.log(JSON.stringify({ before, after: count(), verbs: verbs.length * 21, failed }));
