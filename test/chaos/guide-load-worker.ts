import { setTimeout as sleep } from "node:timers/promises";
import type { Admission, NewMessage, Run } from "../../src/contract/wire.ts";

/** Clients that reach the house through its proxy alone. Nothing is sent twice: what fails, fails. */
export interface Load {
  readonly url: string;
  readonly token: string;
  readonly prefix: string;
  readonly clients: number;
}

export interface LoadReport {
  readonly sent: number;
  /** Requests of any kind, and what was wrong with those that failed. */
  readonly requests: number;
  readonly failed: string[];
  readonly answered: number;
  readonly nodes: string[];
}

const ENDS: readonly Run["status"][] = ["completed", "failed"];
const PAUSE_MS = 30;
const PATIENCE_MS = 60_000;

const { url, token, prefix, clients } = JSON.parse(process.argv[2] as string) as Load;
const failed: string[] = [];
const runs: string[] = [];
const nodes = new Set<string>();
let requests = 0;
let sent = 0;
let isOver = false;

async function ask<T>(path: string, body?: unknown): Promise<T | undefined> {
  requests++;
  try {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(`${url}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text) as T;
    failed.push(`${path}: ${answer.status} ${text.slice(0, 200)}`);
  } catch (error) {
    failed.push(`${path}: ${(error as Error).message} (${((error as Error).cause as Error | undefined)?.message})`);
  }
  return undefined;
}

/** A conversation of its own for each: nothing is answered together with anything else. */
function chat(id: string): Pick<NewMessage, "id" | "chat" | "peer" | "chat_type"> {
  return { id, chat: id, peer: "me", chat_type: "group" };
}

async function client(number: number): Promise<void> {
  for (let round = 0; !isOver; round++) {
    const message: NewMessage = { platform: "api", ...chat(`${prefix}-${number}-${round}`), text: "hello" };
    sent++;
    const admitted = await ask<Admission>("/api/messages", message);
    if (admitted) runs.push(admitted.runId);
    const health = await ask<{ node: string }>("/healthz");
    if (health) nodes.add(health.node);
    await sleep(PAUSE_MS);
  }
}

process.stdin.once("data", () => {
  isOver = true;
});
// Whoever has begun this is gone, and did not say that it is over.
process.stdin.once("end", () => {
  if (!isOver) process.exit(1);
});
await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
let answered = 0;
const until = Date.now() + PATIENCE_MS;
for (const id of runs) {
  for (;;) {
    const run = await ask<Run>(`/api/runs/${id}`);
    if (run?.status === "completed") answered++;
    if ((run && ENDS.includes(run.status)) || Date.now() > until) break;
    await sleep(50);
  }
}
process.stdout.write(`${JSON.stringify({ sent, requests, failed, answered, nodes: [...nodes] } satisfies LoadReport)}\n`);
process.exit(0);
