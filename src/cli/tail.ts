import type { LedgerEvent } from "../contract/events.ts";
import { ledgerEvent } from "../contract/wire.ts";
import { connectRunning } from "./connect.ts";
import { onInterrupt } from "./interrupts.ts";
import { type GlobalOptions, harmless, oneLine, paint, print } from "./terminal.ts";

interface TailOptions extends GlobalOptions {
  readonly after?: number;
  readonly last?: number;
  readonly subject?: string;
  readonly type?: string;
}

const LAST = 20;
const SHORT = 100;

/** Until Ctrl-C, or until whoever reads has seen enough. */
export async function tail({ after, last = LAST, subject, type, ...options }: TailOptions): Promise<number> {
  const client = await connectRunning(options);
  const stop = new AbortController();
  onInterrupt(() => stop.abort());
  const query = new URLSearchParams({
    ...(after === undefined ? { last: String(last) } : {}),
    ...(subject === undefined ? {} : { subject }),
  });
  for await (const { data } of client.watch(`/api/events?${query}`, after ?? null, stop.signal)) {
    const event = ledgerEvent.parse(JSON.parse(data)) as LedgerEvent;
    if (type !== undefined && event.type !== type && !(type.endsWith(".") && event.type.startsWith(type))) continue;
    print(options.json ? JSON.stringify(event) : lineOf(event));
  }
  return 0;
}

function lineOf({ seq, at, type, actor, subject, data }: LedgerEvent): string {
  const { dim, cyan } = paint(process.stdout);
  const time = new Date(at).toTimeString().slice(0, 8);
  const about = harmless(subject.map((part) => (part.includes("/") ? encodeURIComponent(part) : part)).join("/"));
  const told = data === null || data === undefined ? "" : oneLine(JSON.stringify(data), SHORT);
  return `${String(seq).padStart(6)} ${dim(time)} ${cyan(type.padEnd(18))} ${about} ${dim(harmless(actor))} ${dim(told)}`.trimEnd();
}
