import { join } from "node:path";
import type { Sandboxes, SandboxOwner } from "../../../records/workspaces/sandbox/sandboxes.ts";
import { type Attempt, judge } from "./attempt.ts";
import type { Canaries } from "./canaries.ts";
import { PLACE, type Tenant } from "./plant.ts";

const TIME_MS = 10_000;

/** As programs of the attacker, in the sandbox that its config gives it. Without one there is nothing to try: `doctor` warns of it. */
export async function sandboxAttempts(
  { sandboxes, home }: { readonly sandboxes: Sandboxes; readonly home: string },
  owner: SandboxOwner,
  victim: Tenant,
  canaries: Canaries,
): Promise<Attempt[]> {
  if (owner.sandbox.kind === "none" || !(await sandboxes.state()).works) return [];
  const plan = await sandboxes.plan(owner, PLACE, { configFile: join(home, "guildhall.yaml") }, owner.sandbox.network ?? "none");
  const attempts: Attempt[] = [];
  for (const [way, command] of commandsAgainst(home, victim)) {
    const { code, output } = await sandboxes.run(plan, { command, timeoutMs: TIME_MS, signal: new AbortController().signal });
    attempts.push(judge({ kind: "programs", way, mustRefuse: true }, { status: code === 0 ? 200 : 403, text: output }, canaries));
  }
  return attempts;
}

/** Each succeeds only if it gets at something. */
function commandsAgainst(home: string, { id, folder }: Tenant): Map<string, string> {
  const own = join(home, "agents", id);
  const quoted = (path: string): string => `'${path.replaceAll("'", "'\\''")}'`;
  return new Map([
    ["cat its file", `cat ${quoted(join(folder, "secret.txt"))}`],
    ["list its folder", `ls ${quoted(own)}`],
    ["cat its memory", `cat ${quoted(join(own, "memory", "MEMORY.md"))}`],
    [
      "cat the store, the config and the operator's token",
      ["state.db", "guildhall.yaml", "operator.token"].map((name) => `cat ${quoted(join(home, name))}`).join(" || "),
    ],
    ["write into its folder", `echo x > ${quoted(join(folder, "secret.txt"))}`],
  ]);
}

/** What the same agent finds of its own by a program. */
export async function ownFileInside(sandboxes: Sandboxes, owner: SandboxOwner, home: string): Promise<string> {
  const plan = await sandboxes.plan(owner, PLACE, { configFile: join(home, "guildhall.yaml") }, "none");
  return (await sandboxes.run(plan, { command: "cat secret.txt", timeoutMs: TIME_MS, signal: new AbortController().signal })).output;
}
