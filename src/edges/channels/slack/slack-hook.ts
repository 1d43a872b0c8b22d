import { createHmac, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../../contract/secret.ts";
import type { Clock } from "../../../kernel/clock.ts";
import { Failure } from "../../../kernel/failure.ts";

/** What is older could have been recorded by somebody long ago. */
const TOLERANCE_MS = 5 * 60_000;
const VERSION = "v0";

/** The body of what Slack has posted; anything that Slack has not signed just now is refused, and all with the same words. */
export async function signedBody(request: Request, secret: Secret, clock: Clock): Promise<Buffer> {
  const at = request.headers.get("x-slack-request-timestamp") ?? "";
  const given = request.headers.get("x-slack-signature") ?? "";
  const body = Buffer.from(await request.arrayBuffer());
  const isNow = /^\d{1,12}$/.test(at) && Math.abs(clock.now() - Number(at) * 1_000) <= TOLERANCE_MS;
  const wanted = `${VERSION}=${createHmac("sha256", secret.reveal()).update(`${VERSION}:${at}:`).update(body).digest("hex")}`;
  if (!isNow || !isSame(given, wanted)) throw new Failure("request.unauthenticated", "this is not signed by Slack, or too long ago");
  return body;
}

function isSame(given: string, wanted: string): boolean {
  const a = Buffer.from(given);
  const b = Buffer.from(wanted);
  return a.length === b.length && timingSafeEqual(a, b);
}
