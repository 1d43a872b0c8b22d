import type { PairingView } from "../../contract/channels.ts";
import { sha256 } from "../../kernel/canonical-json.ts";
import type { Random } from "../../kernel/random.ts";
import type { Reads, Tx } from "../../store/engine.ts";
import { list, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { type AccountName, lockAccount } from "./channel-accounts.ts";

const CODE_MS = 60 * 60_000;
/** Strangers of one account who hold a code at once: one more is not told any until one has run out. */
const MAX_PENDING = 20;
/** No letters or digits that look alike; 32 of them, so that a byte gives one without a bias. */
const ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_LENGTH = 8;

interface PairingRow {
  readonly platform: string;
  readonly account: string;
  readonly peer: string;
  readonly state: "pending" | "paired";
  readonly messages: number;
  readonly asked_at: number;
  readonly expires_at: number | null;
  readonly paired_at: number | null;
  readonly paired_by: string | null;
}

/** What a stranger who has written is to be told: a code that is new, or nothing. */
export type Knock = { readonly code: string } | null;

/** Which of these senders an owner has let in. */
export async function pairedAmong(reads: Reads, { platform, account }: AccountName, peers: readonly string[]): Promise<Set<string>> {
  if (peers.length === 0) return new Set();
  const rows = await reads.all<{ peer: string }>`select peer from pairings
    where platform = ${platform} and account = ${account} and state = 'paired' and peer in ${list(peers)}`;
  return new Set(rows.map(({ peer }) => peer));
}

/**
 * Somebody who is not on the list has written. They are told one code, once, and no second one before it has run out: whoever writes a
 * thousand times leaves one row and gets one answer. In a group nobody is told a code: others would read it.
 */
export async function knockIn(tx: Tx, name: AccountName, peer: string, mayTell: boolean, random: Random): Promise<Knock> {
  const { platform, account } = name;
  const isKnown = async (): Promise<boolean> =>
    (await tx.run`update pairings set messages = messages + 1
      where platform = ${platform} and account = ${account} and peer = ${peer} and (state = 'paired' or expires_at > now_ms())`) > 0;
  if ((await isKnown()) || !mayTell) return null;
  // One after another: who comes at the same time is counted, and whoever comes twice at once gets one code.
  await lockAccount(tx, name);
  if (await isKnown()) return null;
  const pending = await tx.get<{ count: number }>`select count(*) as count from pairings
    where platform = ${platform} and account = ${account} and state = 'pending' and expires_at > now_ms()`;
  if ((pending?.count ?? 0) >= MAX_PENDING) return null;
  const code = newCode(random);
  await tx.run`insert into pairings (platform, account, peer, state, code, messages, asked_at, expires_at)
    values (${platform}, ${account}, ${peer}, 'pending', ${hashOf(code)}, 1, now_ms(), now_ms() + cast(${CODE_MS} as bigint))
    on conflict (platform, account, peer) do update set state = 'pending', code = excluded.code, messages = pairings.messages + 1,
      asked_at = excluded.asked_at, expires_at = excluded.expires_at`;
  return { code };
}

/** Lets whoever was told this code in, once. Undefined: there is no such code, or its time is over. */
export async function pairIn(tx: Tx, code: string, by: string): Promise<(AccountName & { readonly peer: string }) | undefined> {
  return tx.get<AccountName & { peer: string }>`update pairings set state = 'paired', code = null, expires_at = null, paired_at = now_ms(),
      paired_by = ${by}
    where code = ${hashOf(code)} and state = 'pending' and expires_at > now_ms() returning platform, account, peer`;
}

export async function unpairIn(tx: Tx, { platform, account }: AccountName, peer: string): Promise<boolean> {
  return (await tx.run`delete from pairings where platform = ${platform} and account = ${account} and peer = ${peer}`) > 0;
}

export async function listPairings(reads: Reads): Promise<PairingView[]> {
  const rows = await reads.all<PairingRow>`select platform, account, peer, state, messages, asked_at, expires_at, paired_at, paired_by
    from pairings where state = 'paired' or expires_at > now_ms() order by platform, account, peer`;
  return rows.map(({ asked_at, expires_at, paired_at, paired_by, ...row }) => ({
    ...row,
    askedAt: asked_at,
    expiresAt: expires_at,
    pairedAt: paired_at,
    pairedBy: paired_by,
  }));
}

const OLD_MS = 24 * CODE_MS;

/** For the pulse: whether there is one to be forgotten. */
export const PAIRINGS_OLD = sql`exists (select 1 from pairings where state = 'pending' and expires_at < (select now_ms()) - cast(${OLD_MS} as bigint))`;

/** Those whose code has run out a day ago. Any node may call it, often. */
export async function sweepPairings(store: Store): Promise<number> {
  return store.transact(
    "sweep pairings",
    (tx) => tx.run`delete from pairings where state = 'pending' and expires_at < now_ms() - cast(${OLD_MS} as bigint)`,
  );
}

/** As it is shown: `ABCD-EFGH`. Read with or without the line, in capitals or not. */
function newCode(random: Random): string {
  const letters = Array.from(random.bytes(CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join("");
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}

function hashOf(code: string): string {
  return sha256(code.replaceAll(/[^a-z0-9]/gi, "").toUpperCase());
}
