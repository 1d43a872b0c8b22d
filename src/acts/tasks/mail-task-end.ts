import { newMail } from "../../contract/mail.ts";
import type { Caller } from "../../kernel/caller.ts";
import { isFailure } from "../../kernel/failure.ts";
import { Mailbox } from "../../records/mailbox/mailbox.ts";
import type { StoredTask, TaskEnd } from "../../records/tasks/task-rows.ts";
import type { Tx } from "../../store/engine.ts";
import { sendMailIn } from "../send-mail.ts";
import { labelsOfTask } from "./task-labels.ts";
import type { TaskParts } from "./task-parts.ts";

/** What is longer is read with `task_check`. */
const SHOWN_CHARACTERS = 16_000;
/** Of its JSON, where a character may take six: a mail holds little more, and whoever ends a task must be able to tell it. */
const SHOWN_BYTES = 48 * 1024;
const GOAL_CHARACTERS = 300;
const ERROR_CHARACTERS = 1_000;

/** The opener's mail about a task that nobody waits for; it wakes him. False: his mailbox is full, and he must be told later. */
export async function mailTaskEndIn(parts: TaskParts, tx: Tx, task: StoredTask, end: TaskEnd): Promise<boolean> {
  if (!parts.agents.current.agents.has(task.from)) return true;
  const labels = await labelsOfTask(tx, task);
  const by: Caller = { kind: "agent", name: task.agent ?? task.from, roles: [], run: task.run, step: null, call: null };
  const content = {
    task: task.id,
    agent: task.agent,
    goal: beginningOf(task.goal, GOAL_CHARACTERS),
    status: end.status,
    ...(end.error ? { error: { ...end.error, message: beginningOf(end.error.message, ERROR_CHARACTERS) } } : {}),
    ...(end.status === "completed" ? resultOf(end.result, labels.includes("secret"), task.id) : {}),
  };
  const mail = newMail.parse({ to: task.from, type: "task", content, conversation: task.id, wake: true });
  const mailbox = new Mailbox(parts.store, parts.newId);
  try {
    await sendMailIn({ ...parts, mailbox }, tx, by, mail, labels.includes("external"));
    return true;
  } catch (error) {
    if (!isFailure(error, "mail.full")) throw error;
    return false;
  }
}

/** Mail does not know what must not leave: whoever reads a secret reads it in the task. */
function resultOf(result: unknown, isSecret: boolean, id: string): Readonly<Record<string, unknown>> {
  const more = `read it with task_check ${id}`;
  if (isSecret) return { more };
  const text = typeof result === "string" ? result : JSON.stringify(result ?? null);
  if (text.length <= SHOWN_CHARACTERS && bytesOf(result) <= SHOWN_BYTES) return { result };
  let shown = beginningOf(text, SHOWN_CHARACTERS);
  while (bytesOf(shown) > SHOWN_BYTES) shown = beginningOf(shown, Math.floor(shown.length / 2));
  return { result: shown, more: `this is its beginning; ${more}` };
}

function beginningOf(text: string, characters: number): string {
  return text.slice(0, characters).toWellFormed();
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value ?? null));
}
