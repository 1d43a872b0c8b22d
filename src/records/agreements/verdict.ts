import type { Rule, VoteKind } from "../../contract/proposals.ts";

/** How many of the electorate have voted what. */
export type Tally = Readonly<Record<VoteKind, number>>;

export type Verdict =
  /** It depends on votes that are still to come. */
  { readonly kind: "undecided" } | { readonly kind: "met"; readonly because: string } | { readonly kind: "lost"; readonly because: string };

/** What the votes so far make certain. Nobody votes twice, so a tally only grows and a certain outcome stays certain. */
export function verdictOf(rule: Rule, electors: number, tally: Tally): Verdict {
  if (tally.veto > 0) return { kind: "lost", because: "vetoed" };
  const needed = neededYes(rule, electors);
  const counted = `${tally.yes} yes and ${tally.no} no of ${electors}, ${needed} yes needed`;
  if (tally.yes >= needed) return { kind: "met", because: counted };
  if (electors - tally.no < needed) return { kind: "lost", because: `${counted}: no longer possible` };
  return { kind: "undecided" };
}

export function neededYes(rule: Rule, electors: number): number {
  if (rule === "all") return electors;
  if (rule === "majority") return Math.floor(electors / 2) + 1;
  return rule.k;
}
