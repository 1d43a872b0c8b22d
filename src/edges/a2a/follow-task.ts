import type { StreamResponse } from "@a2a-js/sdk";
import type { LedgerEvent } from "../../contract/events.ts";
import { isTaskOver } from "../../contract/tasks.ts";
import type { LiveChunk } from "../../kernel/live.ts";
import { type AskedTask, readAskedTask } from "../../records/tasks/asked-tasks.ts";
import type { A2aParts } from "./a2a-parts.ts";
import { ANSWER, answerOf, contextOf, textPart, wireStatus, wireTask } from "./wire-task.ts";

/** The task when it is over; undefined: the signal aborts before. The end is the ledger's, so that it does not matter which node brings it. */
export async function taskAtItsEnd({ tasks: { store } }: A2aParts, id: string, signal: AbortSignal): Promise<AskedTask | undefined> {
  const from = await store.ledger.horizon();
  const before = await readAskedTask(store.read, id);
  if (!before || isTaskOver(before.status)) return before;
  for await (const event of store.follow(from, signal)) if (ends(event, id)) break;
  return signal.aborted ? undefined : readAskedTask(store.read, id);
}

/** What has been said since it was last told, and whether it goes on with what was told before. */
class Words {
  #text = "";
  #isNew = true;
  #over = false;
  #wake: () => void = () => {};

  add(chunk: LiveChunk): void {
    if (chunk.kind === "text") this.#text += chunk.text;
    // What was said before a call is no part of the answer; nor is what an attempt said that begins anew.
    if (chunk.kind === "restart" || chunk.kind === "call") {
      this.#text = "";
      this.#isNew = true;
    }
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  async *taken(): AsyncGenerator<{ readonly text: string; readonly append: boolean }, void, void> {
    while (true) {
      if (this.#over) return;
      if (this.#text === "") {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
        continue;
      }
      const told = { text: this.#text, append: !this.#isNew };
      this.#text = "";
      this.#isNew = false;
      yield told;
    }
  }
}

/** The task as it stands, its words where its turn runs on this node, and how it ends. */
export async function* followTask(parts: A2aParts, task: AskedTask, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
  yield { payload: { $case: "task", value: wireTask(task) } };
  if (isTaskOver(task.status)) return;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const words = new Words();
  try {
    const ended = taskAtItsEnd(parts, task.id, either).finally(() => words.end());
    if (task.run !== null) hear(parts.live.listen(task.run, either), words);
    const about = { taskId: task.id, contextId: contextOf(task), metadata: undefined };
    let isFirst = task.status === "queued";
    for await (const { text, append } of words.taken()) {
      if (isFirst) yield { payload: { $case: "statusUpdate", value: { ...about, status: wireStatus({ ...task, status: "running" }) } } };
      isFirst = false;
      const artifact = { artifactId: ANSWER, name: ANSWER, description: "", parts: [textPart(text)], metadata: undefined, extensions: [] };
      yield { payload: { $case: "artifactUpdate", value: { ...about, artifact, append, lastChunk: false } } };
    }
    const over = await ended;
    if (!over) return;
    // Whole, and instead of what was heard: what counts is the commit.
    if (over.status === "completed")
      yield { payload: { $case: "artifactUpdate", value: { ...about, artifact: answerOf(over.result), append: false, lastChunk: true } } };
    yield { payload: { $case: "statusUpdate", value: { ...about, status: wireStatus(over) } } };
  } finally {
    stop.abort();
  }
}

function hear(chunks: AsyncIterable<LiveChunk>, words: Words): void {
  const all = async (): Promise<void> => {
    for await (const chunk of chunks) words.add(chunk);
  };
  // Words that cannot be heard are told at the end all the same.
  all().catch(() => {});
}

function ends({ type, subject }: LedgerEvent, id: string): boolean {
  return subject[0] === "task" && subject[1] === id && ["task.completed", "task.failed", "task.cancelled", "task.lost"].includes(type);
}
