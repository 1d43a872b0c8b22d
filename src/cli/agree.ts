import { ClientError } from "../client/client-error.ts";
import { ProposalsClient } from "../client/proposals.ts";
import type { Pin, Proposal, ProposalDraft, ProposalFilter, Rule, VoteKind } from "../contract/proposals.ts";
import { connectRunning } from "./connect.ts";
import { moment, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

const ID_LENGTH = 20;
const LISTED = 100;

interface ProposeOptions extends GlobalOptions {
  readonly elector: string[];
  readonly rule: string;
  readonly deadline: number;
  readonly write?: string[];
  readonly pin?: string[];
}

export async function propose(subject: string, options: ProposeOptions): Promise<number> {
  const draft: ProposalDraft = {
    subject,
    electorate: options.elector,
    rule: ruleFrom(options.rule),
    deadline_ms: options.deadline,
    writes: (options.write ?? []).map(writeFrom),
    pins: (options.pin ?? []).map(pinFrom),
  };
  const proposal = await (await clientFor(options)).open(draft);
  print(options.json ? JSON.stringify(proposal) : proposal.id);
  if (!options.json) say(`open until ${moment(proposal.deadline)}; vote with: guildhall agree vote ${proposal.id} yes`);
  return 0;
}

export async function vote(id: string, vote: VoteKind, options: GlobalOptions & { readonly hash?: string }): Promise<number> {
  const proposals = await clientFor(options);
  const whole = await wholeId(proposals, id);
  const hash = options.hash ?? (await proposals.read(whole)).hash;
  return show(await proposals.vote(whole, { vote, hash }), options);
}

export async function showProposal(id: string, options: GlobalOptions): Promise<number> {
  const proposals = await clientFor(options);
  return show(await proposals.read(await wholeId(proposals, id)), options);
}

export async function listProposals(options: GlobalOptions & Pick<ProposalFilter, "state" | "limit">): Promise<number> {
  const { proposals } = await (await clientFor(options)).list({ ...stateOf(options), limit: options.limit ?? LISTED });
  if (options.json) print(JSON.stringify({ proposals }));
  else if (proposals.length === 0) say("no proposals");
  else {
    const rows = proposals.map((each) => [
      each.id,
      each.state,
      each.proposer,
      ruleText(each.rule),
      moment(each.deadline),
      line(each.subject),
    ]);
    print(table([["id", "state", "by", "rule", "deadline", "subject"], ...rows]));
  }
  return 0;
}

function show(proposal: Proposal, options: GlobalOptions): number {
  print(options.json ? JSON.stringify(proposal) : proposalText(proposal));
  return 0;
}

function proposalText(proposal: Proposal): string {
  const { id, state, because, proposer, rule, deadline, electorate, votes, pins, writes, hash } = proposal;
  const outcome = because === null ? `open until ${moment(deadline)}` : `${state}: ${because}`;
  const given = new Map(votes.map((each) => [each.voter, each.vote]));
  return harmless(
    [
      bold(line(proposal.subject)),
      `${id} · by ${proposer} · ${ruleText(rule)} of ${electorate.length} · ${outcome}`,
      `hash ${hash}`,
      ...electorate.map((name) => `  ${given.get(name) ?? "–"}  ${name}`),
      ...pins.map(({ pool, key, version }) => `pins ${pool}/${key} ${version === null ? "absent" : `at version ${version}`}`),
      ...writes.map((each) =>
        each.remove ? `removes ${each.pool}/${each.key}` : `writes ${each.pool}/${each.key} = ${JSON.stringify(each.value)}`,
      ),
    ].join("\n"),
  );
}

function ruleText(rule: Rule): string {
  return typeof rule === "string" ? rule : `${rule.k}`;
}

function line(text: string): string {
  return harmless(text.replace(/\s+/g, " "));
}

function ruleFrom(text: string): Rule {
  if (text === "all" || text === "majority") return text;
  if (/^\d{1,4}$/.test(text) && Number(text) > 0) return { k: Number(text) };
  throw new ClientError("usage.wrong", `--rule: expected all, majority or a number, not "${text}"`);
}

/** A pool's name has no slash; a key may have anything. */
function writeFrom(text: string): NonNullable<ProposalDraft["writes"]>[number] {
  const [, pool, key, value] = /^([^/]+)\/([^=]+)=(.*)$/s.exec(text) ?? [];
  if (pool === undefined || key === undefined || value === undefined)
    throw new ClientError("usage.wrong", `--write: expected <pool>/<key>=<value>, not "${text}"`);
  return { pool, key, value: jsonOrText(value) };
}

function pinFrom(text: string): Pin {
  const [, pool, key, version] = /^([^/]+)\/(.+)@(\d+|none)$/s.exec(text) ?? [];
  if (pool === undefined || key === undefined || version === undefined)
    throw new ClientError("usage.wrong", `--pin: expected <pool>/<key>@<version>, not "${text}"`);
  return { pool, key, version: version === "none" ? null : Number(version) };
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function stateOf({ state }: Pick<ProposalFilter, "state">): Pick<ProposalFilter, "state"> {
  return state === undefined ? {} : { state };
}

/** The one proposal one may see whose id begins so. */
async function wholeId(proposals: ProposalsClient, id: string): Promise<string> {
  if (id.length >= ID_LENGTH) return id;
  const found = (await proposals.list({ limit: LISTED })).proposals.filter((each) => each.id.startsWith(id));
  const [only, another] = found;
  if (only === undefined) throw new ClientError("request.not_found", `there is no proposal whose id begins with "${id}"`);
  if (another !== undefined) throw new ClientError("usage.wrong", `several proposals begin with "${id}"; write more of it`);
  return only.id;
}

async function clientFor(options: GlobalOptions): Promise<ProposalsClient> {
  return new ProposalsClient(await connectRunning(options));
}
