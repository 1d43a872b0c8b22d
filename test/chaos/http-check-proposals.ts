import type { Proposal } from "../../src/contract/proposals.ts";
import { type Histories, only } from "./http-check-pools.ts";
import { agreedKey, type Told } from "./http-records.ts";

/** One outcome for everybody, for good, by the rule, with its write or without. */
export function proposalProblems(told: readonly Told[], final: readonly Proposal[], histories: Histories): string[] {
  const problems: string[] = [];
  const byId = new Map(final.map((proposal) => [proposal.id, proposal]));
  const sightings = Map.groupBy(only(told, "saw"), ({ id }) => id);
  for (const [id, seen] of sightings) {
    const outcomes = new Set([...seen.map(({ state }) => state), byId.get(id)?.state ?? "gone"].filter((state) => state !== "open"));
    if (outcomes.size > 1) problems.push(`A1 A3 ${id} was seen as ${[...outcomes].join(" and ")}`);
    const decided = Math.min(...seen.filter(({ state }) => state !== "open").map(({ returned }) => returned as number));
    if (seen.some(({ state, called }) => state === "open" && called > decided)) problems.push(`A3 ${id} was open again after its outcome`);
  }
  const proposed = only(told, "proposed");
  for (const { id, value } of proposed)
    if (id !== null && !byId.has(id)) problems.push(`D1 ${value} was proposed as ${id}, and is nowhere`);
  for (const [subject, same] of Map.groupBy(final, (each) => each.subject))
    if (same.length > 1) problems.push(`E1 ${subject} was proposed once and there are ${same.length}`);
  for (const { id, by, vote, counted } of only(told, "voted")) {
    const cast = byId.get(id)?.votes.find((each) => each.voter === by);
    if (counted && cast?.vote !== vote) problems.push(`A3 ${by} voted ${vote} on ${id}, and it says ${cast?.vote ?? "nothing"}`);
  }
  for (const proposal of final) problems.push(...outcomeProblems(proposal, histories));
  return problems;
}

function outcomeProblems({ id, subject, state, votes, rule, electorate }: Proposal, histories: Histories): string[] {
  const problems: string[] = [];
  if (state === "open") problems.push(`A4 ${id} is still open after its deadline`);
  const voters = new Set(votes.map(({ voter }) => voter));
  if (voters.size < votes.length || [...voters].some((voter) => !electorate.includes(voter)))
    problems.push(`A2 ${id} has votes of others than its electors, or twice of one`);
  const yes = votes.filter(({ vote }) => vote === "yes").length;
  const needed = rule === "all" ? electorate.length : rule === "majority" ? Math.floor(electorate.length / 2) + 1 : rule.k;
  if (state === "committed" && (yes < needed || votes.some(({ vote }) => vote === "veto")))
    problems.push(`A2 ${id} was committed by ${yes} of ${needed}`);
  const written = histories.get(agreedKey(subject))?.length ?? 0;
  if (written !== (state === "committed" ? 1 : 0)) problems.push(`A5 ${id} is ${state}, and its write happened ${written} times`);
  return problems;
}
