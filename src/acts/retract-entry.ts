import type { RetractionAnswer, VersionRef } from "../contract/pools.ts";
import type { Caller } from "../kernel/caller.ts";
import { isFailure } from "../kernel/failure.ts";
import type { Mailbox } from "../records/mailbox/mailbox.ts";
import type { Pools } from "../records/pools/pools.ts";
import { stepsOfTurns } from "../records/workflows/contaminated-steps.ts";
import type { Tx } from "../store/engine.ts";
import { marksOf } from "./send-mail.ts";

const TYPE = "pool.retracted";
const TOLD_AT_MOST = 100;
const EXPIRES_MS = 7 * 86_400_000;

export interface RetractionParts {
  readonly pools: Pools;
  readonly mailbox: Mailbox;
}

/**
 * Withdraws a version with everything made from it, and writes to those who wrote or read any of it, each about what it has seen.
 * A mailbox without room keeps nobody from withdrawing: the event tells it as well.
 */
export async function retractEntryIn(
  { pools, mailbox }: RetractionParts,
  tx: Tx,
  caller: Caller,
  target: VersionRef,
  reason: string,
): Promise<RetractionAnswer> {
  const { concerned, retracted, rerun, hidden, left } = await pools.retractIn(tx, caller, target, reason);
  const marks = await marksOf(pools, tx, caller);
  for (const to of [...concerned.keys()].sort()) {
    const versions = concerned.get(to) ?? [];
    // What somebody was told first, it looks for first: the version that was withdrawn, where it has seen that.
    const first = versions.find((each) => isSame(each, target)) ?? versions[0];
    const own = rerun.filter((each) => each.agent === to);
    const content = { ...first, reason, rerun: own.slice(0, TOLD_AT_MOST), versions: versions.slice(0, TOLD_AT_MOST) };
    const mail = {
      to,
      type: TYPE,
      content,
      priority: "normal" as const,
      conversation: null,
      readers: [],
      wake: false,
      expires_ms: EXPIRES_MS,
    };
    await mailbox.sendIn(tx, caller, mail, marks).catch(unlessFull);
  }
  const workflows = caller.kind === "operator" ? await stepsToRepeat(tx, rerun) : undefined;
  return { retracted: [...retracted], rerun: [...rerun], hidden, left, ...(workflows ? { workflows } : {}) };
}

/** By the runs of workflows that they were steps of. An item of a `foreach` is done again with its step. */
async function stepsToRepeat(tx: Tx, rerun: Readonly<RetractionAnswer["rerun"]>): Promise<NonNullable<RetractionAnswer["workflows"]>> {
  const turns = rerun.flatMap(({ run }) => run ?? []);
  const byRun = Map.groupBy(await stepsOfTurns(tx, turns), ({ workflow }) => workflow);
  return [...byRun].map(([id, steps]) => ({ id, steps: [...new Set(steps.map(({ step }) => step.replace(/\[\d+\]$/, "")))] }));
}

function isSame(a: VersionRef, b: VersionRef): boolean {
  return a.pool === b.pool && a.key === b.key && a.version === b.version;
}

function unlessFull(error: unknown): void {
  if (!isFailure(error, "mail.full")) throw error;
}
