import type { HttpClient } from "./http-client.ts";
import type { Outcome } from "./http-records.ts";
import type { Answer } from "./http-wire.ts";

const RESOURCES = ["repo/a", "repo/b"];

interface SentClaim {
  readonly fence: number;
  readonly takenAt: number;
  readonly expiresAt: number;
}

/** Takes a claim, holds it for a moment, sometimes longer, and gives it back, or forgets it. */
export async function claimSomething(client: HttpClient): Promise<void> {
  const resource = client.pick(RESOURCES);
  const ttl = 200 + Math.floor(client.random.fraction() * 800);
  const wait = client.chance(0.3) ? 150 : 0;
  const answer = await client.ask("POST", "/api/claims", { body: { resource, ttl_ms: ttl, wait_ms: wait } });
  if (answer.status === null) return;
  if (answer.status === 409) return;
  if (answer.status !== 200 && answer.status !== 201) return client.odd("a claim", answer);
  const { fence, takenAt, expiresAt } = answer.body as unknown as SentClaim;
  const { called, returned } = answer;
  client.tell({ kind: "taken", resource, fence, fresh: answer.status === 201, takenAt, expiresAt, called, returned });
  await client.pause(40);
  if (client.chance(0.3)) {
    const renewal = await client.ask("POST", "/api/claims/renew", { body: { resource, fence, ttl_ms: ttl } });
    const until = renewal.status === 200 ? (renewal.body as unknown as SentClaim).expiresAt : null;
    client.tell({ kind: "renewed", fence, expiresAt: until, ...settled(client, "a renewal", renewal) });
  }
  if (client.chance(0.3)) return;
  const release = await client.ask("POST", "/api/claims/release", { body: { resource, fence } });
  client.tell({ kind: "released", fence, ...settled(client, "a release", release) });
}

function settled(client: HttpClient, what: string, answer: Answer): { outcome: Outcome; called: number; returned: number | null } {
  const { called, returned } = answer;
  if (answer.status === null) return { outcome: "unknown", called, returned };
  if (answer.status !== 200 && answer.status !== 409) client.odd(what, answer);
  return { outcome: answer.status === 200 ? "done" : "refused", called, returned };
}
