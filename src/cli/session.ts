import { ClientError } from "../client/client-error.ts";
import { SessionsClient } from "../client/sessions.ts";
import type { Session, SessionHits, TranscriptPage } from "../contract/sessions.ts";
import { connectRunning } from "./connect.ts";
import { moment, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

const MAX_AT_ONCE = 200;

interface ListOptions extends GlobalOptions {
  readonly agent?: string;
  readonly limit?: number;
}

export async function listSessions({ agent, limit, ...options }: ListOptions): Promise<number> {
  const sessions = await clientFor(options);
  const wanted = limit ?? 50;
  const found: Session[] = [];
  for (let after: string | undefined; found.length < wanted; ) {
    const part = await sessions.list({ agent, after, limit: Math.min(MAX_AT_ONCE, wanted - found.length) });
    found.push(...part.sessions);
    if (part.next === null) break;
    after = part.next;
  }
  if (options.json) print(JSON.stringify({ sessions: found }));
  else if (found.length === 0) say("no conversations yet");
  else {
    const rows = found.map((each) => [each.key, each.agent, String(each.messages), moment(each.lastAt), line(each.title)]);
    print(table([["key", "agent", "messages", "last", "begins with"], ...rows]));
  }
  return 0;
}

export async function showSession(
  key: string,
  { limit, before, ...options }: GlobalOptions & { readonly limit?: number; readonly before?: number },
): Promise<number> {
  const sessions = await clientFor(options);
  const filter = { limit: Math.min(MAX_AT_ONCE, limit ?? 50), before };
  const page = await sessions.read(await wholeKey(sessions, key), filter);
  print(options.json ? JSON.stringify(page) : pageText(page));
  if (!options.json && page.next !== null) say(`there is more: --before ${page.next}`);
  return 0;
}

export async function searchSessions(
  q: string,
  { agent, limit, operators, ...options }: ListOptions & { readonly operators?: boolean },
): Promise<number> {
  const sessions = await clientFor(options);
  const { hits } = await sessions.search({ q, agent, limit: limit ?? 20, syntax: operators ? "operators" : "words" });
  if (options.json) print(JSON.stringify({ hits }));
  else if (hits.length === 0) say("nothing was found");
  else print(hits.map(hitText).join("\n"));
  return hits.length === 0 ? 1 : 0;
}

function pageText({ key, agent, model, epoch, entries }: TranscriptPage): string {
  const own = model === null ? "" : ` · model ${harmless(model)}`;
  const head = `${bold(key)}\n${agent} · epoch ${epoch}${own}`;
  let shown = entries[0]?.epoch ?? epoch;
  const lines = entries.flatMap((entry) => {
    const began = entry.epoch === shown ? [] : [`--- epoch ${entry.epoch}`];
    shown = entry.epoch;
    return [...began, `${entry.position} ${entry.role === "user" ? "user" : agent} ${moment(entry.at)}`, harmless(entry.text)];
  });
  return [head, ...lines].join("\n");
}

function hitText({ key, position, role, at, snippet }: SessionHits["hits"][number]): string {
  return `${bold(key)} ${position} ${role} ${moment(at)}\n  ${line(snippet)}`;
}

function line(text: string): string {
  return harmless(text.replace(/\s+/g, " "));
}

/** The key itself, or the one that begins so. */
async function wholeKey(sessions: SessionsClient, key: string): Promise<string> {
  const known = await sessions.read(key, { limit: 1 }).catch((error: unknown) => {
    if (error instanceof ClientError && error.code === "request.not_found") return undefined;
    throw error;
  });
  if (known) return key;
  const [only, another] = (await sessions.list({ prefix: key, limit: 2 })).sessions;
  if (only === undefined) throw new ClientError("request.not_found", `there is no session "${key}"`);
  if (another !== undefined) throw new ClientError("usage.wrong", `several sessions begin with "${key}"; write more of it`);
  return only.key;
}

async function clientFor(options: GlobalOptions): Promise<SessionsClient> {
  return new SessionsClient(await connectRunning(options));
}
