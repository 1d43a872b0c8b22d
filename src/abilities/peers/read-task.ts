import type { Message, Part, Task } from "@a2a-js/sdk";
import { PeerTrouble } from "./peer-trouble.ts";

/** What a peer says of a task. */
export interface PeerTask {
  readonly id: string;
  readonly contextId: string | null;
  /** `asks`: it waits for more from whoever asked. */
  readonly state: "open" | "completed" | "failed" | "cancelled" | "rejected" | "asks";
  /** Its result, or what it says about why there is none. */
  readonly text: string;
}

const LONGEST_ID = 1_000;
/** Of a result; beyond it, it is cut and says so. */
const MOST_TEXT = 1_000_000;

// The SDK's own numbers (`TaskState`): a type alone loads nothing.
const STATES: Readonly<Record<number, PeerTask["state"]>> = {
  3: "completed",
  4: "failed",
  5: "cancelled",
  6: "asks",
  7: "rejected",
  // It waits for somebody to sign in there: nobody here would see it.
  8: "asks",
};

export function peerTaskOf(task: Task): PeerTask {
  const state = STATES[task.status?.state ?? 0] ?? "open";
  const said = task.status?.message ? textOf(task.status.message.parts) : "";
  const made = (task.artifacts ?? []).map(({ parts }) => textOf(parts)).filter((text) => text !== "");
  const text = state === "completed" ? made.join("\n\n") || said || lastWords(task.history) : said || made.join("\n\n");
  const contextId = task.contextId || null;
  refuseUnlessName("task", task.id);
  refuseUnlessName("context", contextId);
  return { id: task.id, contextId, state, text: cut(text) };
}

/** It is written down, and sent back. */
function refuseUnlessName(what: "task" | "context", id: string | null): void {
  if (id === null || (id !== "" && id.length <= LONGEST_ID && !id.includes("\0") && id.isWellFormed())) return;
  throw new PeerTrouble("refused", `what it calls the ${what} is no name of at most ${LONGEST_ID} characters`);
}

/** Peers may answer at once, without a task. */
export function answerOf(message: Message): { readonly text: string; readonly contextId: string | null } {
  return { text: cut(textOf(message.parts)), contextId: message.contextId || null };
}

/** ROLE_AGENT. */
function lastWords(history: readonly Message[] | undefined): string {
  const last = history?.findLast(({ role }) => role === 2);
  return last ? textOf(last.parts) : "";
}

function textOf(parts: readonly Part[]): string {
  return parts
    .map(({ content, filename, mediaType }) => {
      if (content?.$case === "text") return content.value;
      if (content?.$case === "data") return JSON.stringify(content.value ?? null);
      if (content?.$case === "url") return `[${filename || mediaType || "file"}: ${content.value}]`;
      if (content?.$case === "raw") return `[${filename || mediaType || "file"}, ${content.value.length} bytes: not taken]`;
      return "";
    })
    .filter((text) => text !== "")
    .join("\n");
}

function cut(text: string): string {
  const sound = text.replaceAll("\0", "").toWellFormed();
  return sound.length <= MOST_TEXT ? sound : `${sound.slice(0, MOST_TEXT).toWellFormed()}\n[cut: it was ${sound.length} characters long]`;
}
