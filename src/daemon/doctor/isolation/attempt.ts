import type { Canaries } from "./canaries.ts";

/**
 * What came of one attempt.
 * `refused`: as it should be. `own`: it was answered, with nothing of the victim's. `leaked`: something of the victim's came back.
 * `accepted`: it was done, where it had to be refused. `unprobed`: the attempt did not fit, so that it shows nothing. `broken`: an error inside.
 */
export type Outcome = "refused" | "own" | "leaked" | "accepted" | "unprobed" | "broken";

export interface Attempt {
  /** What it is after: sessions, pools, mail, files, … */
  readonly kind: string;
  /** How: `GET /api/runs/{id}`, `read ../../bob/workspace/secret.txt`. */
  readonly way: string;
  readonly outcome: Outcome;
  /** Status and code of the refusal, or which canaries came back. */
  readonly detail: string;
}

export const FAILING: readonly Outcome[] = ["leaked", "accepted", "unprobed", "broken"];

/** Everything that came back, whichever way: status, headers and body in one text. */
export interface Reply {
  readonly status: number;
  readonly text: string;
}

export interface Judging {
  readonly kind: string;
  readonly way: string;
  /** False: answering is fine, as long as nothing of the victim's is in the answer. */
  readonly mustRefuse: boolean;
  /** The request: what it named itself may be named in the answer. */
  readonly said?: string;
}

export function judge({ kind, way, mustRefuse, said }: Judging, reply: Reply, victim: Canaries): Attempt {
  const found = victim.in(reply.text, said);
  const code = /"code":"([a-z_.]+)"/.exec(reply.text)?.[1] ?? "";
  const detail = `${reply.status}${code === "" ? "" : ` ${code}`}`;
  if (found.length > 0) return { kind, way, outcome: "leaked", detail: `${detail}: ${found.join(", ")}` };
  if (reply.status >= 500) return { kind, way, outcome: "broken", detail };
  // What does not fit the schema was turned away before anybody asked who calls.
  if (reply.status === 422 || code === "request.malformed")
    return { kind, way, outcome: "unprobed", detail: `${detail}: ${messageIn(reply.text)}` };
  if (reply.status < 400) return { kind, way, outcome: mustRefuse ? "accepted" : "own", detail };
  return { kind, way, outcome: "refused", detail };
}

function messageIn(text: string): string {
  return /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1]?.slice(0, 200) ?? "";
}
