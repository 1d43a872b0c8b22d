import { ClientError } from "../client/client-error.ts";
import { PoolsClient } from "../client/pools.ts";
import type { Entry, EntryHead, Pool } from "../contract/pools.ts";
import { connectRunning } from "./connect.ts";
import { onInterrupt } from "./interrupts.ts";
import { moment, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

export async function listPools(name: string | undefined, options: GlobalOptions & { readonly prefix?: string }): Promise<number> {
  const pools = await poolsFor(options);
  if (name !== undefined) return listEntries(pools, name, options);
  const found = await pools.list();
  if (options.json) print(JSON.stringify({ pools: found }));
  else if (found.length === 0) say("there are no pools; name one under `pools:` in the config");
  else print(table([["pool", "kind", "state", "you may"], ...found.map(poolRow)]));
  return 0;
}

async function listEntries(pools: PoolsClient, name: string, options: GlobalOptions & { readonly prefix?: string }): Promise<number> {
  const found: EntryHead[] = [];
  for (let after: string | undefined; ; ) {
    const page = await pools.entries(name, { prefix: options.prefix, after });
    found.push(...page.entries);
    if (page.next === null) break;
    after = page.next;
  }
  if (options.json) print(JSON.stringify({ entries: found }));
  else if (found.length === 0) say("there are no entries");
  else print(table([["key", "version", "by", "label", "bytes", "written"], ...found.map(headRow)]));
  return 0;
}

export async function getEntry(
  name: string,
  key: string,
  options: GlobalOptions & { readonly at?: number; readonly full?: boolean },
): Promise<number> {
  const pools = await poolsFor(options);
  const entry = await pools.read(name, key, { version: options.at, full: options.full });
  if (options.json) {
    print(JSON.stringify(entry));
    return 0;
  }
  say(caption(entry));
  if (entry.spilled && !options.full) say("this is only the beginning; --full prints all of it");
  print(harmless(typeof entry.value === "string" ? entry.value : JSON.stringify(entry.value, null, 2)));
  return 0;
}

interface PutOptions extends GlobalOptions {
  readonly ifVersion?: number;
  readonly new?: boolean;
  readonly ttl?: string;
  readonly note?: string;
}

export async function putEntry(name: string, key: string, value: string, options: PutOptions): Promise<number> {
  if (options.new && options.ifVersion !== undefined)
    throw new ClientError("usage.wrong", "--new and --if-version cannot both hold; give one of them");
  const pools = await poolsFor(options);
  const { ttl, note } = options;
  const entry = await pools.put(name, key, jsonOr(value), { ifVersion: options.new ? null : options.ifVersion, ttl, note });
  print(options.json ? JSON.stringify(entry) : caption(entry));
  return 0;
}

export async function deleteEntry(name: string, key: string, options: GlobalOptions & { readonly ifVersion?: number }): Promise<number> {
  const pools = await poolsFor(options);
  const tombstone = await pools.remove(name, key, options.ifVersion);
  print(options.json ? JSON.stringify(tombstone) : `${harmless(key)} is gone from version ${tombstone.version} on`);
  return 0;
}

export async function watchPool(name: string, options: GlobalOptions & { readonly after?: number }): Promise<number> {
  const pools = await poolsFor(options);
  const stop = new AbortController();
  onInterrupt(() => stop.abort());
  process.once("SIGTERM", () => stop.abort());
  const after = options.after ?? (await pools.snapshot(name, { limit: 1 })).at;
  say(`watching ${harmless(name)} after event ${after}; Ctrl-C ends`);
  for await (const change of pools.watch(name, after, stop.signal)) {
    const keys = change.data.keys.map(({ key, version }) => `${harmless(key)}@${version}`).join(" ");
    print(options.json ? JSON.stringify(change) : `${change.seq}  ${change.type}  ${change.actor}  ${keys}`);
  }
  return 0;
}

export async function poolsFor(options: GlobalOptions): Promise<PoolsClient> {
  return new PoolsClient(await connectRunning(options));
}

export function caption(entry: Entry): string {
  const marks = [entry.label === "external" ? "external" : "", entry.retracted ? "retracted" : ""].filter((mark) => mark !== "");
  const note = entry.note === null ? "" : `\n${harmless(entry.note)}`;
  return `${bold(harmless(entry.key))} version ${entry.version} by ${writer(entry)}${marks.map((mark) => `, ${mark}`).join("")}${note}`;
}

export function writer({ author }: Pick<EntryHead, "author">): string {
  return harmless([author.agent, author.run, author.step].filter((part) => part !== null).join(" / "));
}

function poolRow(pool: Pool): string[] {
  return [pool.name, pool.kind, pool.state, pool.writable ? "read, write" : "read"];
}

function headRow(head: EntryHead): string[] {
  return [harmless(head.key), String(head.version), writer(head), head.label, String(head.size), moment(head.at)];
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
