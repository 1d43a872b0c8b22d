import { ClaimsClient } from "../client/claims.ts";
import type { Claim, ClaimList } from "../contract/claims.ts";
import { connectRunning } from "./connect.ts";
import { moment, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface TakeOptions extends GlobalOptions {
  readonly ttl?: number;
  readonly wait?: number;
  readonly shared?: boolean;
}

export async function takeClaim(resource: string, options: TakeOptions): Promise<number> {
  const claims = await clientFor(options);
  const claim = await claims.take({
    resource,
    ...(options.ttl === undefined ? {} : { ttl_ms: options.ttl }),
    ...(options.wait === undefined ? {} : { wait_ms: options.wait }),
    ...(options.shared ? { mode: "shared" } : {}),
  });
  show(claim, options);
  return 0;
}

export async function renewClaim(resource: string, fence: number, options: GlobalOptions & { readonly ttl?: number }): Promise<number> {
  const claims = await clientFor(options);
  show(await claims.renew({ resource, fence, ...(options.ttl === undefined ? {} : { ttl_ms: options.ttl }) }), options);
  return 0;
}

export async function releaseClaim(resource: string, fence: number, options: GlobalOptions): Promise<number> {
  const claims = await clientFor(options);
  await claims.release({ resource, fence });
  print(options.json ? JSON.stringify({ resource, fence, released: true }) : `${harmless(resource)} is free`);
  return 0;
}

export async function listClaims(prefix: string | undefined, options: GlobalOptions & { readonly overlaps?: string }): Promise<number> {
  const claims = await clientFor(options);
  const found: ClaimList["claims"] = [];
  for (let after: string | undefined; ; ) {
    const part = await claims.list({ prefix, overlaps: options.overlaps, after });
    found.push(...part.claims);
    if (part.next === null) break;
    after = part.next;
  }
  if (options.json) print(JSON.stringify({ claims: found }));
  else if (found.length === 0) say("nothing is claimed");
  else print(tableOf(found));
  return 0;
}

function tableOf(claims: ClaimList["claims"]): string {
  const rows = claims.map((claim) => [
    harmless(claim.resource),
    claim.holder,
    claim.mode,
    String(claim.fence),
    moment(claim.expiresAt),
    claim.waiters === 0 ? "" : `${claim.waiters} waiting`,
  ]);
  return table([["resource", "holder", "mode", "fence", "until", ""], ...rows]);
}

function show(claim: Claim, options: GlobalOptions): void {
  const held = claim.mode === "shared" ? "is shared by" : "is held by";
  const text = `${bold(harmless(claim.resource))} ${held} ${claim.holder}\nfence ${claim.fence}, until ${moment(claim.expiresAt)}`;
  print(options.json ? JSON.stringify(claim) : text);
}

async function clientFor(options: GlobalOptions): Promise<ClaimsClient> {
  return new ClaimsClient(await connectRunning(options));
}
