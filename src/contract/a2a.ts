import { z } from "zod";
import { secret } from "./secret.ts";
import { duration } from "./text.ts";

const url = z.url({ protocol: /^https?$/, error: "expected an address such as https://hall.example.org" });

/** Agents that programs elsewhere may ask, by A2A. */
export const a2aConfig = z.strictObject({
  /** Their ids, or "*" for all; without a word, none is published and the addresses do not exist. */
  agents: z
    .union([z.literal("*"), z.array(z.string()).max(1_000)])
    .transform((written): readonly string[] => (written === "*" ? ["*"] : written))
    .default([]),
  /** Where others reach this daemon, when that is not the address they ask: behind a proxy. */
  url: url.optional(),
  /** How deep whatever others ask for may delegate further; what they ask for is at depth 1 or deeper. */
  max_depth: z.int().min(1).max(10).default(2),
  /** Tasks of one caller that may be open at once. */
  max_open: z.int().min(1).max(10_000).default(20),
});

export const PEER_PREFIX = "peer:";
const peerName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "a peer's name is 1 to 64 lowercase letters, digits, _ and -");

/** An agent elsewhere; delegated to as `peer:<name>`. */
const peer = z.strictObject({
  /** Of the agent, or of its card (then it ends in `.json`). */
  url,
  /** Sent as a bearer token, to that address and to no other. */
  token: secret.optional(),
  /** How long a peer that does not answer is asked again. */
  give_up_after: duration.default(15 * 60_000),
});
export const peersConfig = z.record(peerName, peer);
export type PeerConfig = z.output<typeof peer>;

/** `other` of `peer:other`; null: an agent of this house. */
export function peerIn(delegate: string): string | null {
  return delegate.startsWith(PEER_PREFIX) ? delegate.slice(PEER_PREFIX.length) : null;
}

/** Under this name a message tells which houses a task has passed, and how deep it is. Only ever believed where it narrows. */
export const HOPS_EXTENSION = "urn:guildhall:a2a:hops:1";
/** A house that has passed on a task; more of them are refused. */
export const MAX_HOPS = 16;
export const hops = z.object({
  houses: z.array(z.string().min(1).max(100)).max(MAX_HOPS),
  depth: z.int().min(0).max(1_000),
  max_depth: z.int().min(0).max(1_000).optional(),
});
export type Hops = z.output<typeof hops>;
