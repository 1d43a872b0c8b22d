import { lookAtUnread } from "../../acts/take-mail.ts";
import { entryKey } from "../../contract/pools.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { noEntry } from "../../records/pools/access.ts";
import { CLAIMS_URI, ENTRY_TEMPLATE, entryUri, MAIL_URI, parseUri, type ResourceName } from "./resource-uri.ts";
import type { McpParts } from "./tool.ts";

const PAGE = 200;
const CLAIMS_SHOWN = 1_000;
const MAIL_SHOWN = 50;
const JSON_TYPE = "application/json";

const FIXED = [
  { uri: CLAIMS_URI, name: "claims", description: "Who holds what, and until when", mimeType: JSON_TYPE },
  { uri: MAIL_URI, name: "mail", description: "Mail that waits for you; take it with mail_read", mimeType: JSON_TYPE },
];

export const RESOURCE_TEMPLATES = [
  { uriTemplate: ENTRY_TEMPLATE, name: "entry", description: "One entry of the shared memory, percent-encoded", mimeType: JSON_TYPE },
];

/** Claims and mail, then the entries of every pool the caller may read, a part at a time. */
export async function listResources({ pools }: McpParts, caller: Caller, cursor: string | undefined) {
  const from = cursor === undefined ? undefined : placeOf(cursor);
  const resources = from ? [] : [...FIXED];
  for (const { name } of await pools.list(caller)) {
    if (from && name < from.pool) continue;
    let after = from?.pool === name ? from.key : undefined;
    do {
      const { entries, next } = await pools.listEntries(caller, name, { limit: PAGE, after });
      for (const { key, version, author } of entries) {
        const description = `version ${version} by ${author.agent}`;
        resources.push({ uri: entryUri(name, key), name: `${name}/${key}`, description, mimeType: JSON_TYPE });
      }
      after = next ?? undefined;
      const last = entries.at(-1);
      if (last && resources.length >= PAGE) return { resources, nextCursor: cursorOf(name, last.key) };
    } while (after !== undefined);
  }
  return { resources };
}

/** Refuses with `request.not_found` what is not there, or not for this caller. */
export async function readResource(parts: McpParts, caller: Caller, uri: string) {
  const value = await contentsOf(parts, caller, nameOf(uri));
  return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(value, null, 1) }] };
}

/** May be followed before there is an entry; a pool or key that the caller may not read does not exist for it. */
export async function mustBeReadable({ pools }: McpParts, caller: Caller, uri: string): Promise<void> {
  const name = nameOf(uri);
  if (name.kind !== "entry") return;
  const [readable] = entryKey.safeParse(name.key).success ? await pools.readable(caller, name.pool, [name.key]) : [];
  if (readable === undefined) throw noResource(uri);
}

async function contentsOf(parts: McpParts, caller: Caller, name: ResourceName): Promise<unknown> {
  const { pools, claims } = parts;
  switch (name.kind) {
    case "claims":
      return claims.list(caller, { limit: CLAIMS_SHOWN });
    case "mail":
      return { mail: await lookAtUnread(parts, caller, MAIL_SHOWN) };
    case "entry": {
      const entry = await pools.read(caller, name.pool, name.key);
      if (!entry) throw noEntry(name.pool, name.key);
      return entry;
    }
  }
}

function nameOf(uri: string): ResourceName {
  const name = parseUri(uri);
  if (!name) throw noResource(uri);
  return name;
}

function noResource(uri: string): Failure {
  return new Failure("request.not_found", `there is no resource ${uri}`);
}

function cursorOf(pool: string, key: string): string {
  return Buffer.from(JSON.stringify([pool, key])).toString("base64url");
}

function placeOf(cursor: string): { readonly pool: string; readonly key: string } {
  try {
    const [pool, key] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    if (typeof pool === "string" && typeof key === "string") return { pool, key };
  } catch {
    // Said below.
  }
  throw new Failure("request.malformed", "cursor: expected nextCursor of the part before");
}
