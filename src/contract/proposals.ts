import { z } from "zod";
import { entryKey } from "./pools.ts";
import { duration, identifier, text } from "./text.ts";

export const MAX_ELECTORS = 1_000;
const MAX_SUBJECT = 10_000;
const MAX_WRITES = 100;
const MAX_PINS = 100;
const MAX_DEADLINE_MS = 365 * 86_400_000;

const VOTES = ["yes", "no", "veto"] as const;
const STATES = ["open", "committed", "aborted"] as const;

/** `all`: everybody says yes; `majority`: more than half of the electorate; `{k: n}`: at least n of it. A veto ends it under every rule. */
const rule = z.union([z.enum(["all", "majority"]), z.strictObject({ k: z.int().positive().max(MAX_ELECTORS) })], {
  error: 'expected "all", "majority" or {"k": n}',
});
export type Rule = z.output<typeof rule>;

/** An entry that must still be the same when it is decided. `null`: there must still be none. */
const pin = z.strictObject({ pool: identifier, key: entryKey, version: z.int().positive().nullable() });
export type Pin = z.output<typeof pin>;

const write = z
  .strictObject({
    pool: identifier,
    key: entryKey,
    value: z.unknown().optional(),
    /** True: the entry goes, and `value` is left out. */
    remove: z.literal(true).optional(),
    /** The version this write replaces, `null` for a new key. Left out: whatever is current when the proposal is opened. */
    if_version: z.int().positive().nullable().optional(),
    ttl: duration.optional(),
    note: text(2_000).optional(),
  })
  .refine((each) => (each.value === undefined) === (each.remove === true), {
    path: ["value"],
    message: "expected a value, or remove: true",
  });
export type ProposedWrite = z.output<typeof write>;

const elector = identifier.refine(
  (name) => name !== "*" && !name.startsWith("role:"),
  "expected the name of one identity: the electorate is counted when the proposal is opened",
);

const distinct = (names: readonly string[]): boolean => new Set(names).size === names.length;
const keyOf = ({ pool, key }: { readonly pool: string; readonly key: string }): string => JSON.stringify([pool, key]);

export const newProposal = z
  .strictObject({
    subject: text(MAX_SUBJECT),
    electorate: z.array(elector).min(1).max(MAX_ELECTORS).refine(distinct, "expected every member once"),
    rule,
    deadline_ms: z.int().positive().max(MAX_DEADLINE_MS, "expected milliseconds from now on, at most a year"),
    pins: z
      .array(pin)
      .max(MAX_PINS)
      .refine((pins) => distinct(pins.map(keyOf)), "expected every entry once")
      .default([]),
    writes: z
      .array(write)
      .max(MAX_WRITES)
      .refine((writes) => distinct(writes.map(keyOf)), "expected every entry once")
      .default([]),
  })
  .refine(({ rule, electorate }) => typeof rule === "string" || rule.k <= electorate.length, {
    path: ["rule"],
    message: "expected k to be at most the number of electors",
  });
export type NewProposal = z.output<typeof newProposal>;
/** As a proposer may write it, defaults left out. */
export type ProposalDraft = z.input<typeof newProposal>;

/** The hash says what the voter has read: a vote never counts for anything else. */
export const newVote = z.strictObject({ vote: z.enum(VOTES), hash: text(256) });
export type NewVote = z.output<typeof newVote>;
export type VoteKind = NewVote["vote"];

/** The hash is sha256 over the JSON, with sorted keys and no spaces, of deadline, electorate, pins, proposer, rule, subject and writes. */
export const proposal = z.object({
  id: z.string(),
  subject: z.string(),
  hash: z.string(),
  proposer: z.string(),
  electorate: z.array(z.string()),
  rule,
  deadline: z.number(),
  pins: z.array(pin),
  writes: z.array(write),
  /** `external`: whoever proposed it had read input from outside; so is what it writes. */
  label: z.enum(["trusted", "external"]),
  state: z.enum(STATES),
  votes: z.array(z.object({ voter: z.string(), vote: z.enum(VOTES), at: z.number() })),
  because: z.string().nullable(),
  createdAt: z.number(),
  decidedAt: z.number().nullable(),
});
export type Proposal = z.output<typeof proposal>;
export type ProposalState = Proposal["state"];

export const proposalQuery = z.strictObject({
  state: z.enum(STATES).optional(),
  /** Continues a list after the last id of the part before. */
  before: z.string().max(64).optional(),
  limit: z.coerce.number().int().min(1).max(100).default(50),
});
export type ProposalQuery = z.output<typeof proposalQuery>;
export type ProposalFilter = Partial<ProposalQuery>;

/** The newest first, without votes and writes. */
export const proposalList = z.object({ proposals: z.array(proposal.omit({ votes: true, writes: true, pins: true, electorate: true })) });
export type ProposalList = z.output<typeof proposalList>;
