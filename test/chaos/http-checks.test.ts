import { expect, test } from "vitest";
import type { Entry } from "../../src/contract/pools.ts";
import { claimProblems } from "./http-check-claims.ts";
import { mailProblems } from "./http-check-mail.ts";
import { watchProblems } from "./http-check-pools.ts";
import { proposalProblems } from "./http-check-proposals.ts";
import type { PoolInput, PoolOutput, Told } from "./http-records.ts";
import { type KeyOperation, refuted } from "./http-register.ts";

const op = (input: PoolInput, output: PoolOutput | null, called: number, returned: number | null): KeyOperation => ({
  input,
  output,
  called,
  returned,
});
const wrote = (version: number, value: string, called: number, returned: number): KeyOperation =>
  op({ write: value }, { wrote: [version, value] }, called, returned);
const read = (shown: [number, string] | null, called: number, returned: number): KeyOperation =>
  op({ read: true }, { shown }, called, returned);
const lost = (input: PoolInput, called: number): KeyOperation => op(input, null, called, null);
const swap = (from: number | null, value: string): PoolInput => ({ swap: [from, value] });

test.each([
  ["an unanswered write that a later answer shows", [wrote(1, "a", 0, 1), lost({ write: "b" }, 2), read([2, "b"], 5, 6)]],
  ["an unanswered write that never happened", [wrote(1, "a", 0, 1), lost({ write: "b" }, 2), read([1, "a"], 5, 6)]],
  ["an unanswered write that another has covered", [wrote(1, "a", 0, 1), lost({ write: "b" }, 2), wrote(3, "c", 5, 6)]],
  ["an unanswered delete", [wrote(1, "a", 0, 1), lost({ remove: null }, 2), read(null, 5, 6), wrote(3, "b", 7, 8)]],
  ["a refusal that shows what an unanswered swap did", [lost(swap(null, "a"), 0), op(swap(null, "b"), { refused: [1, "a"] }, 3, 4)]],
] as const)("a key's history may contain %s", (_name, history) => {
  expect(refuted(history)).toBeNull();
});

test.each([
  ["an acknowledged write that is gone", [wrote(1, "a", 0, 1), read(null, 2, 3)]],
  ["an unanswered write that comes and goes", [lost({ write: "a" }, 0), read([1, "a"], 1, 2), read(null, 3, 4)]],
  ["a version given out twice", [wrote(1, "a", 0, 1), wrote(1, "b", 2, 3)]],
  [
    "a swap that was granted on a version long replaced",
    [wrote(1, "a", 0, 1), wrote(2, "b", 2, 3), op(swap(1, "c"), { wrote: [3, "c"] }, 4, 5)],
  ],
  ["a swap that was refused although it fitted", [wrote(1, "a", 0, 1), op(swap(1, "b"), { refused: [1, "a"] }, 2, 3)]],
  ["a version that grew without a write", [wrote(1, "a", 0, 1), wrote(3, "b", 2, 3)]],
  ["an unanswered write that happened twice", [lost({ write: "a" }, 0), wrote(2, "b", 2, 3), wrote(4, "c", 6, 7)]],
] as const)("a key's history cannot contain %s", (_name, history) => {
  expect(refuted(history)).not.toBeNull();
});

const entry = (key: string, version: number, seq: number): Entry => ({ key, version, seq, deleted: false }) as Entry;
const watched = (seq: number, key: string, version: number) => ({ seq, type: "pool.written", keys: [{ key, version }] });

test("a watcher that misses, repeats or tears apart an event is found out", () => {
  const histories = new Map([
    ["a", [entry("a", 1, 3), entry("a", 2, 7)]],
    ["b", [entry("b", 1, 7)]],
  ]);
  const whole = { seq: 7, type: "pool.written", keys: [...watched(7, "a", 2).keys, ...watched(7, "b", 1).keys] };
  expect(watchProblems([watched(3, "a", 1), whole], histories)).toEqual([]);
  expect(watchProblems([watched(3, "a", 1)], histories)).toHaveLength(1);
  expect(watchProblems([watched(3, "a", 1), watched(3, "a", 1), whole], histories)).toHaveLength(1);
  expect(watchProblems([watched(3, "a", 1), watched(7, "a", 2)], histories)).toHaveLength(1);
});

const taken = (by: string, fence: number, takenAt: number, expiresAt: number, called: number): Told => ({
  kind: "taken",
  by,
  resource: "r",
  fence,
  fresh: true,
  takenAt,
  expiresAt,
  called,
  returned: called + 1,
});

test("two holders at a time, a fence that went back and a renewal of the lost are found out", () => {
  expect(claimProblems([taken("ann", 1, 100, 200, 10), taken("ben", 2, 200, 300, 20)])).toEqual([]);
  expect(claimProblems([taken("ann", 1, 100, 200, 10), taken("ben", 2, 199, 300, 20)])).toHaveLength(1);
  expect(claimProblems([taken("ann", 2, 100, 200, 10), taken("ben", 1, 200, 300, 20)])).not.toEqual([]);
  const released: Told = { kind: "released", by: "ann", fence: 1, outcome: "unknown", called: 15, returned: null };
  expect(claimProblems([taken("ann", 1, 100, 200, 10), released, taken("ben", 2, 150, 300, 20)])).toEqual([]);
  const renewed: Told = { kind: "renewed", by: "ann", fence: 1, outcome: "done", expiresAt: 190, called: 30, returned: 31 };
  expect(claimProblems([taken("ann", 1, 100, 150, 10), taken("ben", 2, 200, 300, 20), renewed])).toHaveLength(1);
});

test("mail that is lost, doubled or comes after its ack is found out", () => {
  const sent: Told = { kind: "sent", by: "ann", value: "v", id: "m1" };
  const received = (fence: number): Told => ({ kind: "received", by: "ben", id: "m1", fence, value: "v" });
  const acked: Told = { kind: "acked", by: "ben", id: "m1", fence: 1, value: "v", outcome: "done", with: null };
  const final = { id: "m1", from: "ann", to: "ben", state: "acked" };
  const none = new Map<string, Entry[]>();
  expect(mailProblems([sent, received(1), acked], [final], none)).toEqual([]);
  expect(mailProblems([sent], [], none)).not.toEqual([]);
  expect(mailProblems([sent, received(1), acked, received(2)], [final], none)).toHaveLength(1);
  expect(mailProblems([sent, received(1), acked], [{ ...final, state: "pending" }], none)).toHaveLength(1);
  expect(mailProblems([sent], [final, { ...final, id: "m2" }], none)).not.toEqual([]);
  expect(mailProblems([sent, received(1), { ...acked, with: "done.0" }], [final], none)).toHaveLength(1);
});

test("an outcome that differs, changes or comes without its write is found out", () => {
  const vote = { voter: "ann", vote: "yes" as const, at: 0 };
  const final = {
    id: "p",
    subject: "s",
    hash: "",
    proposer: "ann",
    electorate: ["ann"],
    rule: "all" as const,
    deadline: 0,
    pins: [],
    writes: [],
    label: "trusted" as const,
    state: "committed" as const,
    votes: [vote],
    because: null,
    createdAt: 0,
    decidedAt: 0,
  };
  const written = new Map([["agreed.s", [entry("agreed.s", 1, 1)]]]);
  const saw = (state: string, called: number): Told => ({
    kind: "saw",
    by: "ben",
    id: "p",
    state,
    because: null,
    called,
    returned: called + 1,
  });
  expect(proposalProblems([saw("open", 1), saw("committed", 3)], [final], written)).toEqual([]);
  expect(proposalProblems([saw("aborted", 1)], [final], written)).toHaveLength(1);
  expect(proposalProblems([saw("committed", 1), saw("open", 5)], [final], written)).toHaveLength(1);
  expect(proposalProblems([], [final], new Map())).toHaveLength(1);
  expect(proposalProblems([], [{ ...final, votes: [] }], written)).toHaveLength(1);
});
