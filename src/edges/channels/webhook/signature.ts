import { createHmac, timingSafeEqual } from "node:crypto";
import { ChannelTrouble } from "../../../kernel/channel.ts";
import { Failure } from "../../../kernel/failure.ts";

/** As Standard Webhooks has it: what is older could have been recorded by somebody long ago. */
const TOLERANCE_S = 5 * 60;
const MIN_KEY_BYTES = 24;
const MAX_ID = 256;

/** A secret as Standard Webhooks writes it: base64, with or without `whsec_` before it. */
export function keyOf(secret: string): Buffer {
  const written = secret.trim().replace(/^whsec_/, "");
  const key = Buffer.from(written, "base64");
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(written) || key.length < MIN_KEY_BYTES)
    throw new ChannelTrouble(
      "refused",
      `secret must be base64 of at least ${MIN_KEY_BYTES} bytes, with or without whsec_ before it; make one with: openssl rand -base64 32`,
    );
  return key;
}

/** The headers that show whom a body is from. */
export function signed(key: Buffer, id: string, now: number, body: string | Uint8Array): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${digest(key, id, timestamp, body).toString("base64")}`,
  };
}

/** Answers the id of what was posted. Whoever changes its key signs with the old and the new one: one of them is enough. */
export function checkSignature(key: Buffer, headers: Headers, now: number, body: Uint8Array): string {
  const id = headers.get("webhook-id") ?? "";
  const timestamp = headers.get("webhook-timestamp") ?? "";
  const signatures = (headers.get("webhook-signature") ?? "").split(" ").filter((one) => one.startsWith("v1,"));
  if (id === "" || id.length > MAX_ID || !/^\d{1,12}$/.test(timestamp) || signatures.length === 0)
    throw unsigned("the headers webhook-id, webhook-timestamp and webhook-signature are needed");
  if (Math.abs(now / 1_000 - Number(timestamp)) > TOLERANCE_S) throw unsigned("the time of the signature is too far from now");
  const expected = digest(key, id, timestamp, body);
  if (!signatures.some((one) => isSame(expected, Buffer.from(one.slice(3), "base64")))) throw unsigned("the signature does not fit");
  return id;
}

function digest(key: Buffer, id: string, timestamp: string, body: string | Uint8Array): Buffer {
  return createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
}

function isSame(expected: Buffer, given: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function unsigned(message: string): Failure {
  return new Failure("request.unauthenticated", message, {
    hint: "Sign it as standardwebhooks.com describes, with the secret of this account, within five minutes.",
  });
}
