import { networkOf } from "../../abilities/tools/runtime/sandbox-of.ts";
import { ANY_ARGUMENTS, mayCall } from "../../deciders/policy/may-call.ts";
import { systemClock } from "../../kernel/clock.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import type { Agent } from "../../records/agents/agent.ts";
import { type Revision, revisionOf } from "../../records/agents/revision.ts";
import { Bubblewrap, type SandboxState } from "../../records/workspaces/sandbox/bubblewrap.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { broken, type Finding, ok, warning } from "./check.ts";

const INSTALL = "Install it: `apt install bubblewrap` (Debian, Ubuntu), `dnf install bubblewrap` (Fedora), `apk add bubblewrap` (Alpine).";
const USERNS = "Let programs make user namespaces, for example by `sysctl kernel.apparmor_restrict_unprivileged_userns=0`.";
const WITHOUT = "Programs that need no sandbox run with `sandbox: none`.";
const MAX_NAMED = 5;

/** What is really in force for the programs of each agent, seen by starting one. */
export async function sandboxChecks(settings: Settings): Promise<Finding[]> {
  const revision = revisionOf(settings, 0);
  const running = [...revision.agents.values()].filter((agent) => agent.state === "active" && runsPrograms(agent, revision));
  if (running.length === 0) return [ok("sandbox", "no agent may run programs")];
  const bare = running.filter(({ sandbox }) => sandbox.kind === "none");
  const boxed = running.filter(({ sandbox }) => sandbox.kind !== "none");
  return [...(boxed.length === 0 ? [] : inSandbox(boxed, revision, await tried())), ...bare.map(withoutSandbox)];
}

async function tried(): Promise<SandboxState> {
  const bubblewrap = new Bubblewrap({ newId: idSource(systemClock, systemRandom), node: process.execPath });
  try {
    return await bubblewrap.state();
  } finally {
    await bubblewrap.close();
  }
}

function inSandbox(agents: readonly Agent[], revision: Revision, state: SandboxState): Finding[] {
  if (!state.works) {
    const fix = `${state.why.includes("not installed") ? INSTALL : state.why.includes("Linux") ? "" : USERNS} ${WITHOUT}`.trim();
    const found = `programs of ${named(agents)} are refused: ${state.why}`;
    return [(agents.some(({ sandbox }) => sandbox.kind === "bubblewrap") ? broken : warning)("sandbox", found, fix)];
  }
  const networks = Map.groupBy(agents, (agent) => networkOf({ agent, revision }));
  const words = [...networks].map(([network, of]) => `network ${network}: ${named(of)}`).join("; ");
  const full = networks.get("full") ?? [];
  return [
    ok("sandbox", `bubblewrap works and is in force (${words})`),
    ...(state.boundsProcesses
      ? []
      : [
          warning(
            "sandbox-limits",
            "as the administrator, and without control groups, a program may start any number of others",
            "Run guildhall as an ordinary user.",
          ),
        ]),
    ...(full.length === 0
      ? []
      : [
          warning(
            "sandbox-network",
            `programs of ${named(full)} reach everything that this machine reaches, this daemon included${state.isRoot ? "; with the administrator's number" : ""}`,
            "Write `sandbox: { network: guarded }` where the public web is enough.",
          ),
        ]),
  ];
}

function withoutSandbox({ id }: Agent): Finding {
  return warning(
    `sandbox.${id}`,
    "its programs run without a sandbox, as this user: they reach the secrets and files of all agents",
    "Write `sandbox: auto`, unless that is what you want.",
  );
}

function runsPrograms({ grant }: Agent, { policy }: Revision): boolean {
  return mayCall({ grant, current: policy, tool: "terminal", args: ANY_ARGUMENTS }).verdict !== "deny";
}

function named(agents: readonly Agent[]): string {
  const shown = agents.slice(0, MAX_NAMED).map(({ id }) => id);
  return `${shown.join(", ")}${agents.length > MAX_NAMED ? ` and ${agents.length - MAX_NAMED} more` : ""}`;
}
