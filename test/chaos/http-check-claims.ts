import { only } from "./http-check-pools.ts";
import type { Told } from "./http-records.ts";

interface Hold {
  readonly resource: string;
  readonly holder: string;
  readonly fence: number;
  readonly takenAt: number;
  readonly called: number;
  readonly returned: number;
  /** By the last acknowledgement, in the database's time. */
  expiresAt: number;
  /** When a release that was not refused was first asked for. */
  givenUp: number;
  /** When a renewal or release was last asked for that was granted. */
  grantedLast: number;
}

/** One holder per fence, fences that only grow, and no two holders at a time, by what the holders themselves were told. */
export function claimProblems(told: readonly Told[]): string[] {
  const problems: string[] = [];
  const holds = new Map<number, Hold>();
  // A repeat by the holder's other hand may be heard before the answer that made the claim.
  for (const taken of only(told, "taken").sort((a, b) => Number(b.fresh) - Number(a.fresh))) {
    const { fence, resource, by: holder, takenAt, expiresAt, called } = taken;
    const returned = taken.returned as number;
    const known = holds.get(fence);
    if (!known)
      holds.set(fence, {
        resource,
        holder,
        fence,
        takenAt,
        called,
        returned,
        expiresAt,
        givenUp: Number.POSITIVE_INFINITY,
        grantedLast: 0,
      });
    else if (known.holder !== holder || known.resource !== resource)
      problems.push(`L1 fence ${fence} was given to ${known.holder} for ${known.resource} and to ${holder} for ${resource}`);
    else if (taken.fresh) problems.push(`L1 fence ${fence} was given out twice`);
    else known.expiresAt = Math.max(known.expiresAt, expiresAt);
  }
  for (const { fence, outcome, expiresAt, called } of only(told, "renewed")) {
    const hold = holds.get(fence);
    if (!hold || outcome !== "done") continue;
    hold.expiresAt = Math.max(hold.expiresAt, expiresAt ?? 0);
    hold.grantedLast = Math.max(hold.grantedLast, called);
  }
  for (const { fence, outcome, called } of only(told, "released")) {
    const hold = holds.get(fence);
    if (!hold || outcome === "refused") continue;
    hold.givenUp = Math.min(hold.givenUp, called);
    if (outcome === "done") hold.grantedLast = Math.max(hold.grantedLast, called);
  }
  for (const [resource, all] of Map.groupBy(holds.values(), (hold) => hold.resource)) {
    const inOrder = all.sort((a, b) => a.fence - b.fence);
    for (const [index, later] of inOrder.entries())
      for (const earlier of inOrder.slice(0, index)) problems.push(...pairProblems(resource, earlier, later));
  }
  return problems;
}

function pairProblems(resource: string, earlier: Hold, later: Hold): string[] {
  const problems: string[] = [];
  if (later.returned < earlier.called) problems.push(`L1 ${resource}: fence ${earlier.fence} was given out after ${later.fence}`);
  const over = earlier.givenUp < later.returned || earlier.expiresAt <= later.takenAt;
  if (!over)
    problems.push(
      `L1 ${resource}: ${later.holder} took it (${later.fence}) at ${later.takenAt}, while ${earlier.holder} (${earlier.fence}) held it until ${earlier.expiresAt}`,
    );
  if (earlier.grantedLast > later.returned)
    problems.push(`L5 L6 ${resource}: ${earlier.holder} still renewed or released ${earlier.fence} after ${later.fence} was given out`);
  return problems;
}
