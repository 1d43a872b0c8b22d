import type { Reads, Tx } from "../../store/engine.ts";

/**
 * What is known of a task that an agent elsewhere does.
 *
 *   waiting → intended → sent → over
 *
 * waiting: nothing was sent. intended: it may have arrived. sent: the peer has named it. over: the peer has said how it ended, or that it
 * knows nothing of it.
 */
export interface RemoteTask {
  readonly taskId: string;
  readonly peer: string;
  readonly state: "waiting" | "intended" | "sent" | "over";
  readonly remoteId: string | null;
  readonly contextId: string | null;
  /** How often it was looked at since it was sent. */
  readonly looks: number;
  /** How long the peer has not answered; null: it has. */
  readonly lostMs: number | null;
  /** Attempts since then. */
  readonly tries: number;
  /** What came of telling the peer to stop; null: nobody has. */
  readonly cancel: string | null;
}

interface RemoteRow {
  readonly task_id: string;
  readonly peer: string;
  readonly state: RemoteTask["state"];
  readonly remote_id: string | null;
  readonly context_id: string | null;
  readonly looks: number;
  readonly lost_ms: number | null;
  readonly tries: number;
  readonly cancel: string | null;
}

/** `conversation`: whose and which; the context of an earlier task of it goes on. */
export async function addRemoteTask(tx: Tx, taskId: string, peer: string, conversation: string | null): Promise<void> {
  const before =
    conversation === null
      ? undefined
      : await tx.get<{ context_id: string | null }>`select context_id from remote_tasks
          where peer = ${peer} and conversation = ${conversation} and context_id is not null order by task_id desc limit 1`;
  await tx.run`insert into remote_tasks (task_id, peer, conversation, state, context_id, looks, tries)
    values (${taskId}, ${peer}, ${conversation}, 'waiting', ${before?.context_id ?? null}, 0, 0)`;
}

/** The row in the work queue that drives it. */
export async function setRemoteWork(tx: Tx, taskId: string, workId: number): Promise<void> {
  await tx.run`update tasks set work_id = ${workId} where id = ${taskId}`;
}

export async function readRemoteTask(reads: Reads, taskId: string): Promise<RemoteTask | undefined> {
  const row =
    await reads.get<RemoteRow>`select task_id, peer, state, remote_id, context_id, looks, now_ms() - lost_since as lost_ms, tries, cancel
    from remote_tasks where task_id = ${taskId}`;
  return (
    row && {
      taskId: row.task_id,
      peer: row.peer,
      state: row.state,
      remoteId: row.remote_id,
      contextId: row.context_id,
      looks: row.looks,
      lostMs: row.lost_ms,
      tries: row.tries,
      cancel: row.cancel,
    }
  );
}

/** From here on it may have arrived. */
export async function intendRemoteTask(tx: Tx, taskId: string): Promise<void> {
  await tx.run`update remote_tasks set state = 'intended' where task_id = ${taskId} and state = 'waiting'`;
  await tx.run`update tasks set status = 'running' where id = ${taskId} and ended_at is null`;
}

export async function noteRemoteTask(tx: Tx, taskId: string, remoteId: string, contextId: string | null): Promise<void> {
  await tx.run`update remote_tasks set state = 'sent', remote_id = ${remoteId}, context_id = coalesce(cast(${contextId} as text), context_id)
    where task_id = ${taskId} and state <> 'over'`;
  await tx.run`update tasks set status = 'running' where id = ${taskId} and ended_at is null`;
}

/** It was looked at, and has not ended. */
export async function lookedAtRemoteTask(tx: Tx, taskId: string): Promise<void> {
  await tx.run`update remote_tasks set looks = looks + 1, lost_since = null, tries = 0 where task_id = ${taskId}`;
  await tx.run`update tasks set error = null where id = ${taskId} and ended_at is null`;
}

/** The peer does not answer: whoever looks at the task sees why it stands still. */
export async function loseRemoteTask(tx: Tx, taskId: string, error: { readonly code: string; readonly message: string }): Promise<void> {
  await tx.run`update remote_tasks set lost_since = coalesce(lost_since, now_ms()), tries = tries + 1 where task_id = ${taskId}`;
  await tx.run`update tasks set error = ${JSON.stringify(error)} where id = ${taskId} and ended_at is null`;
}

export async function endRemoteTask(tx: Tx, taskId: string): Promise<void> {
  await tx.run`update remote_tasks set state = 'over', lost_since = null, tries = 0 where task_id = ${taskId}`;
}

/** `told`, or why not. */
export async function noteRemoteCancel(tx: Tx, taskId: string, outcome: string): Promise<void> {
  await tx.run`update remote_tasks set cancel = ${outcome.slice(0, 500)} where task_id = ${taskId}`;
}

/** It is to be told to stop: attempts are counted anew. */
export async function beginRemoteCancel(tx: Tx, taskId: string): Promise<void> {
  await tx.run`update remote_tasks set tries = 0 where task_id = ${taskId}`;
}

export async function triedRemoteCancel(tx: Tx, taskId: string): Promise<void> {
  await tx.run`update remote_tasks set tries = tries + 1 where task_id = ${taskId}`;
}
