import { setTimeout as sleep } from "node:timers/promises";
import type { Entry } from "../../src/contract/pools.ts";
import type { Proposal } from "../../src/contract/proposals.ts";
import { claimProblems } from "./http-check-claims.ts";
import { type FinalMail, mailProblems } from "./http-check-mail.ts";
import { type Histories, only, poolProblems, watchProblems } from "./http-check-pools.ts";
import { proposalProblems } from "./http-check-proposals.ts";
import { agreedKey, counterKey, doneKey, POOL, pairKeys, REGISTERS, registerKey, type Told, type Watched } from "./http-records.ts";
import type { Wire } from "./http-wire.ts";

const LAST = "last";
export const WATCH_UNTIL = LAST;
const SETTLE_MS = 10_000;

const entryPath = (key: string): string => `/api/pools/${POOL}/entries/${encodeURIComponent(key)}`;

export function keysOf(generation: number): string[] {
  const registers = Array.from({ length: REGISTERS }, (_, index) => registerKey(generation, index));
  return [...registers, counterKey(generation), ...pairKeys(generation), doneKey(generation)];
}

/** The pool of a round: registers, pairs and acks may be written blindly, counters only with the version they replace. */
export async function makePool(wire: Wire, generations: number): Promise<void> {
  const keys: Record<string, { policy: string }> = {};
  for (let generation = 0; generation < generations; generation++)
    for (const key of keysOf(generation)) if (key !== counterKey(generation)) keys[key] = { policy: "last_write" };
  const made = await wire.insist("POST", "/api/pools", { body: { name: POOL, readers: ["*"], writers: ["*"], keys } });
  if (made.status !== 201) throw new Error(`the pool was not made: ${JSON.stringify(made.body)}`);
}

export const sayLast = async (wire: Wire): Promise<void> => {
  await wire.insist("PUT", entryPath(LAST), { body: { value: true }, headers: { "idempotency-key": LAST } });
};

async function historyOf(wire: Wire, key: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const { status, body } = await wire.insist("GET", `${entryPath(key)}/history?after=${after}&limit=500`);
    if (status === 404) return entries;
    const page = body as unknown as { entries: Entry[]; next: number | null };
    entries.push(...page.entries);
    after = page.next;
  }
  return entries;
}

async function allMail(wire: Wire): Promise<FinalMail[]> {
  const mail: FinalMail[] = [];
  for (let before: number | null | undefined; before !== null; ) {
    const { body } = await wire.insist("GET", `/api/mail?box=all&limit=500${before ? `&before=${before}` : ""}`);
    const page = body as unknown as { mail: FinalMail[]; next: number | null };
    mail.push(...page.mail);
    before = page.next;
  }
  return mail;
}

/** Every proposal, as soon as none is open whose deadline is over. */
async function allProposals(wire: Wire): Promise<Proposal[]> {
  const until = performance.now() + SETTLE_MS;
  while (performance.now() < until) {
    const { body } = await wire.insist("GET", "/api/proposals?state=open&limit=1");
    if ((body.proposals as unknown[]).length === 0) break;
    await sleep(200);
  }
  const ids: string[] = [];
  for (let before: string | undefined, more = true; more; ) {
    const { body } = await wire.insist("GET", `/api/proposals?limit=100${before ? `&before=${before}` : ""}`);
    const page = (body.proposals as Proposal[]).map(({ id }) => id);
    ids.push(...page);
    before = page.at(-1);
    more = page.length === 100;
  }
  return Promise.all(ids.map(async (id) => (await wire.insist("GET", `/api/proposals/${id}`)).body as unknown as Proposal));
}

export interface RoundVerdict {
  readonly problems: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Looks at what is there in the end, as an operator, and holds it against all that was told. */
export async function judge(wire: Wire, told: readonly Told[], watched: readonly Watched[], generations: number): Promise<RoundVerdict> {
  const proposals = await allProposals(wire);
  const keys = [LAST, ...Array.from({ length: generations }, (_, generation) => keysOf(generation)).flat()];
  keys.push(...proposals.map(({ subject }) => agreedKey(subject)));
  const histories = new Map<string, Entry[]>();
  for (const key of keys) {
    const history = await historyOf(wire, key);
    if (history.length > 0) histories.set(key, history);
  }
  const mail = await allMail(wire);
  const problems = [
    ...only(told, "odd").map(({ what, by }) => `${by}: ${what}`),
    ...only(told, "repeated").flatMap(({ path, key, same }) => (same ? [] : [`E1 ${path} with the key ${key} got another answer`])),
    ...poolProblems(told, histories, generations),
    ...watchProblems(watched, histories),
    ...claimProblems(told),
    ...mailProblems(told, mail, histories),
    ...proposalProblems(told, proposals, histories),
  ];
  return { problems, counts: countsOf(told, watched, histories, mail, proposals) };
}

function countsOf(
  told: readonly Told[],
  watched: readonly Watched[],
  histories: Histories,
  mail: readonly FinalMail[],
  proposals: readonly Proposal[],
): Record<string, number> {
  const entries = only(told, "entry");
  const unanswered = told.filter((each) => ("returned" in each && each.returned === null) || ("id" in each && each.id === null));
  return {
    "operations on entries": entries.length,
    "histories checked": new Set(entries.map(({ key }) => key)).size,
    "versions made": [...histories.values()].flat().length,
    "events watched": watched.length,
    batches: only(told, "pair").length,
    "repeats with the same key": only(told, "repeated").length,
    "claims taken": only(told, "taken").filter(({ fresh }) => fresh).length,
    "mails sent": mail.length,
    "mails acked": mail.filter(({ state }) => state === "acked").length,
    "proposals committed": proposals.filter(({ state }) => state === "committed").length,
    "proposals aborted": proposals.filter(({ state }) => state === "aborted").length,
    "outcomes seen": only(told, "saw").filter(({ state }) => state !== "open").length,
    "answers that never came": unanswered.length,
  };
}
