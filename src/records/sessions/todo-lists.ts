import type { Reads, Tx } from "../../store/engine.ts";

/** What an agent means to do in a conversation, in its order. */
export interface TodoItem {
  readonly text: string;
  readonly state: "pending" | "doing" | "done";
}

/** An epoch begins with an empty list, and the old one stays where it was. */
export async function readTodoList(reads: Reads, sessionKey: string, epoch: number): Promise<TodoItem[]> {
  const row = await reads.get<{ items: string }>`select items from todo_lists where session_key = ${sessionKey} and epoch = ${epoch}`;
  return row ? (JSON.parse(row.items) as TodoItem[]) : [];
}

export async function replaceTodoList(tx: Tx, sessionKey: string, epoch: number, runId: string, items: readonly TodoItem[]): Promise<void> {
  await tx.run`insert into todo_lists (session_key, epoch, items, run_id, at)
    values (${sessionKey}, ${epoch}, ${JSON.stringify(items)}, ${runId}, now_ms())
    on conflict (session_key, epoch) do update set items = excluded.items, run_id = excluded.run_id, at = excluded.at`;
}
