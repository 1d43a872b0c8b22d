import { type AddressQuery, addressAsked, addressQuery, type RouteAddress, type RouteExplanation } from "../contract/routing.ts";
import { explainRoute } from "../drivers/intake/explain-route.ts";
import { Failure } from "../kernel/failure.ts";
import { type Revision, revisionOf } from "../records/agents/revision.ts";
import { inWords } from "../settings/config-problem.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";

/** Where messages go by the config file as it stands, whether or not a daemon runs. */

export interface LocalExplanation {
  readonly explanation: RouteExplanation;
  readonly configFile: string | null;
}

/** What people leave out may be undefined. */
export type AskedAddress = { readonly [Field in keyof AddressQuery]?: AddressQuery[Field] | undefined };

/** `limit`: rules that are told; all without it. */
export function explainRouteAt(where: Whereabouts, asked: AskedAddress, limit?: number): LocalExplanation {
  const checked = addressQuery.safeParse(asked);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const what =
      issue?.code === "too_small" ? "is empty" : issue?.code === "too_big" ? `is longer than ${issue.maximum} characters` : issue?.message;
    throw new Failure("usage.wrong", `--${issue?.path.join(".").replace("_", "-")}: ${what}`);
  }
  const address = addressAsked(checked.data);
  if (!address) throw new Failure("usage.wrong", "name the chat with --chat, or the sender with --peer");
  const revision = revisionAt(where);
  return { explanation: explainRoute(revision, address, limit), configFile: revision.settings.configFile };
}

/** What a config would do with recorded messages. */
export interface RoutesToBe {
  /** Agents whose sections are broken: whatever goes to them is refused, also what went to them before. */
  readonly broken: readonly { readonly agent: string; readonly because: string }[];
  agentFor(address: RouteAddress): string | null;
  /** The rule that decides, and what hinders the agent. */
  reasonFor(address: RouteAddress): Pick<RouteExplanation, "tier" | "binding" | "state"> & { readonly line: number | null };
}

export function routesToBe(where: Whereabouts): RoutesToBe {
  const revision = revisionAt(where);
  const { quarantined } = revision.settings;
  return {
    broken: Array.from(quarantined, ([agent, [problem]]) => ({ agent, because: problem ? inWords(problem) : "" })),
    agentFor: (address) => revision.router.route(address).agent,
    reasonFor: (address) => {
      const { tier, binding, state, trace } = explainRoute(revision, address, 1);
      return { tier, binding, state, line: trace.find((line) => line.hit)?.line ?? null };
    },
  };
}

function revisionAt(where: Whereabouts): Revision {
  return revisionOf(loadSettings(where, process.env), 0);
}
