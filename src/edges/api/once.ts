import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import type { Caller } from "../../kernel/caller.ts";
import { canonicalJson, sha256 } from "../../kernel/canonical-json.ts";
import { Failure, isFailure } from "../../kernel/failure.ts";
import type { Tx } from "../../store/engine.ts";
import type { IdempotentRequest } from "../../store/idempotency.ts";
import type { Store } from "../../store/store.ts";
import type { PlainAnswer } from "./route.ts";

const KEEP_MS = 24 * 3_600_000;
/** After the death of the node that ran a request, its key is free again after so long. */
const LEASE_MS = 15_000;
const RENEW_MS = 5_000;
const MAX_KEY = 255;

export interface KeyedRequest {
  readonly caller: Caller;
  readonly method: string;
  /** As it was sent, without the query. */
  readonly path: string;
  /** What makes it the same request: query and body. */
  readonly content: unknown;
  readonly key: string;
  /** The bearer token that locks the recorded answer, where the answer holds a secret. */
  readonly lock: string | null;
}

export type RecordAnswer = (tx: Tx, answer: PlainAnswer) => Promise<void>;

/**
 * Runs a request once per (identity, method, path, key). An answer is recorded in the transaction of its effect where the handler
 * calls `record` there, and then there is exactly one effect whatever dies. A handler that does not is recorded right after it: a
 * crash in between leaves the effect, and the next try, after the lease, makes it again.
 * A refusal is not recorded: it had no effect, and the same request may succeed later.
 */
export async function once(store: Store, request: KeyedRequest, run: (record: RecordAnswer) => Promise<PlainAnswer>): Promise<PlainAnswer> {
  const identified = identify(request);
  const begun = await store.idempotency.begin(identified, LEASE_MS, KEEP_MS);
  if (begun.state === "conflict") throw new Failure("request.key_reused", "this idempotency key was used for another request");
  if (begun.state === "in-progress") throw new Failure("request.in_progress", "the first request with this idempotency key still runs");
  if (begun.state === "replay") {
    const first = unlock(request, begun.result);
    return { ...first, headers: { ...first.headers, "idempotent-replayed": "true" } };
  }

  const { fence } = begun;
  let recorded = false;
  const record: RecordAnswer = async (tx, answer) => {
    await store.idempotency.finish(tx, identified, fence, lock(request, answer));
    recorded = true;
  };
  const renewing = setInterval(() => void store.idempotency.renew(identified, fence, LEASE_MS).catch(() => {}), RENEW_MS);
  try {
    const answer = await run(record);
    if (!recorded) await store.transact("finish request", (tx) => record(tx, answer), "locked");
    return answer;
  } catch (error) {
    // Not when the effect may have been committed without its record. With its record, this finds nothing to give back.
    if (recorded || !isFailure(error, "store.outcome_unknown")) await store.idempotency.abandon(identified, fence).catch(() => {});
    if (isFailure(error, "fence.stale")) throw new Failure("request.in_progress", "another run of this request has taken over");
    throw error;
  } finally {
    clearInterval(renewing);
  }
}

/** The key of the header, or of the body, from which it is taken away. */
export function takeKey(header: string | undefined, body: unknown): string | null {
  let inBody: unknown;
  if (body !== null && typeof body === "object" && Object.hasOwn(body, "idempotency_key")) {
    const fields = body as { idempotency_key?: unknown };
    inBody = fields.idempotency_key;
    delete fields.idempotency_key;
  }
  const key = header ?? inBody;
  if (key === undefined || key === null) return null;
  if (typeof key !== "string" || key.length === 0 || key.length > MAX_KEY || key.includes("\0") || !key.isWellFormed())
    throw new Failure("request.malformed", `idempotency_key: expected a text of 1 to ${MAX_KEY} characters`);
  if (inBody !== undefined && inBody !== null && inBody !== key)
    throw new Failure("request.malformed", "idempotency_key: the header and the body say different things");
  return key;
}

function identify({ caller, method, path, content, key }: KeyedRequest): IdempotentRequest {
  // Paths are long, and may hold what must not be stored, encoded in whatever way.
  return { scope: ["http", caller.kind, caller.name, method, sha256(path)], key, request: sha256(canonicalJson(content)) };
}

/** A token is stored as a hash only, so the answer that shows it must not lie about in clear: not even for a day. */
function lock(request: KeyedRequest, answer: PlainAnswer): unknown {
  if (request.lock === null) return answer;
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", keyOf(request), nonce);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(answer)), cipher.final(), cipher.getAuthTag()]);
  return { nonce: nonce.toString("base64"), sealed: sealed.toString("base64") };
}

function unlock(request: KeyedRequest, result: unknown): PlainAnswer {
  if (request.lock === null) return result as PlainAnswer;
  const { nonce, sealed } = result as { nonce: string; sealed: string };
  const bytes = Buffer.from(sealed, "base64");
  try {
    const decipher = createDecipheriv("aes-256-gcm", keyOf(request), Buffer.from(nonce, "base64"));
    decipher.setAuthTag(bytes.subarray(-16));
    return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(0, -16)), decipher.final()]).toString()) as PlainAnswer;
  } catch {
    throw new Failure("request.key_reused", "the answer was a secret, and is shown again only to the token that asked first");
  }
}

function keyOf(request: KeyedRequest): Buffer {
  return Buffer.from(hkdfSync("sha256", request.lock ?? "", request.key, "guildhall recorded answer", 32));
}
