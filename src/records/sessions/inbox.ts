import type { Reads, Tx } from "../../store/engine.ts";

/** What makes two deliveries of a platform the same message. */
export interface MessageIdentity {
  readonly platform: string;
  readonly account: string;
  readonly externalId: string;
}

/** Answers the run this message belongs to: ours when it is new, the first one's when it has come before. */
export async function enterInbox(tx: Tx, message: MessageIdentity, runId: string): Promise<string> {
  const { platform, account, externalId } = message;
  const entered = await tx.run`insert into inbox (platform, account, external_id, run_id, at)
    values (${platform}, ${account}, ${externalId}, ${runId}, now_ms()) on conflict (platform, account, external_id) do nothing`;
  if (entered > 0) return runId;
  return (await runOfMessage(tx, message)) as string;
}

/** Null: it has not come, or nobody was to answer it. */
export async function runOfMessage(reads: Reads, { platform, account, externalId }: MessageIdentity): Promise<string | null> {
  const row = await reads.get<{ run_id: string }>`select run_id from inbox
    where platform = ${platform} and account = ${account} and external_id = ${externalId}`;
  return row?.run_id ?? null;
}
