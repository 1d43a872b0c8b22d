import { execFileSync } from "node:child_process";
import { text as readAll } from "node:stream/consumers";
import { ApiClient } from "../client/api-client.ts";
import { ClientError } from "../client/client-error.ts";
import { GuestsClient } from "../client/guests.ts";
import { GUARDED_AT_ONCE, type GuardAnswer } from "../contract/guests.ts";
import type { Workspace } from "../contract/workspace.ts";
import { parseHook } from "./guard-hook.ts";
import { ancestors, nameOfProcess } from "./processes.ts";
import { placeOf, workspaceOf } from "./repository.ts";
import { type GlobalOptions, harmless, print, say } from "./terminal.ts";

export interface GuardOptions extends GlobalOptions {
  readonly git?: boolean;
  readonly hook?: boolean;
  readonly name?: string;
}

const REFUSED = 1;
/** What agents' programs take for "do not". Any other number they only mention. */
const HOOK_REFUSED = 2;
/** A daemon that does not answer must not keep anybody from working. */
const PATIENCE_MS = 5_000;

/** Says whether somebody else has claimed the files. Only a claim refuses: whatever goes wrong here lets the write go on, with a word. */
export async function guard(files: readonly string[], options: GuardOptions): Promise<number> {
  if (options.hook) return guardHook(options);
  if (options.git) {
    const staged = stagedFiles();
    return staged ? guardFiles(staged, process.cwd(), undefined, options, REFUSED) : 0;
  }
  if (files.length === 0) throw new ClientError("usage.wrong", "which files? Name them, or use --git or --hook");
  return guardFiles(files, process.cwd(), undefined, options, REFUSED);
}

export async function where(options: GlobalOptions): Promise<number> {
  const { encodeWorkspace, WORKSPACE_HEADER } = await import("../contract/workspace.ts");
  const place = await workspaceOf(process.cwd(), process.env.PWD);
  const header = `${WORKSPACE_HEADER}: ${encodeWorkspace(place)}`;
  print(options.json ? JSON.stringify({ ...place, header }) : `${place.repository}\n${header}`);
  return 0;
}

async function guardHook(options: GuardOptions): Promise<number> {
  const call = parseHook(await readAll(process.stdin));
  if (!call) {
    say("guildhall guard: expected the JSON of a hook on stdin; the write goes on");
    return 0;
  }
  const exit = await guardFiles(call.files, call.folder ?? process.cwd(), call.session, options, HOOK_REFUSED, call.wantsJson);
  // Nothing said is no leave given: other rules of the program still hold.
  if (exit === 0 && call.wantsJson) print("{}");
  return exit;
}

async function guardFiles(
  files: readonly string[],
  from: string,
  session: string | undefined,
  options: GuardOptions,
  refused: number,
  wantsJson = false,
): Promise<number> {
  if (files.length === 0) return 0;
  const answer = await ask(files, from, session, options);
  if (!answer) return 0;
  if (options.json) print(JSON.stringify(answer));
  if (answer.held.length === 0) return 0;
  const reason = inWords(answer);
  say(reason);
  if (wantsJson && !options.json) print(JSON.stringify({ permission: "deny", agent_message: reason, user_message: reason }));
  return refused;
}

async function ask(
  files: readonly string[],
  from: string,
  session: string | undefined,
  options: GuardOptions,
): Promise<GuardAnswer | undefined> {
  const { findDaemon } = await import("../daemon/find-daemon.ts");
  const found = findDaemon(options);
  if (!found) {
    say("guildhall guard: no daemon runs, so nobody was asked; the write goes on");
    return undefined;
  }
  try {
    const name = options.name ?? process.env.GUILDHALL_NAME;
    const places = await placesOf(files, from, options.git === true);
    const guests = new GuestsClient(new ApiClient(found.address.url, found.token));
    const late = AbortSignal.timeout(PATIENCE_MS);
    const asker = {
      ...(name ? { name } : {}),
      ...(session === undefined ? {} : { session: session.slice(0, 300) }),
      ancestors: ancestors().map(nameOfProcess),
    };
    const answers: GuardAnswer[] = [];
    for (let from = 0; from < places.length; from += GUARDED_AT_ONCE)
      answers.push(await guests.guard({ files: places.slice(from, from + GUARDED_AT_ONCE), ...asker }, late));
    return { who: answers[0]?.who ?? null, held: answers.flatMap(({ held }) => held) };
  } catch (error) {
    say(`guildhall guard: the daemon could not be asked (${harmless((error as Error).message)}); the write goes on`);
    return undefined;
  }
}

/** Of one commit all files are in one repository: git is asked once, and links are taken as they are. */
async function placesOf(files: readonly string[], from: string, sameRepository: boolean) {
  if (!sameRepository) {
    const workspaces = new Map<string, Promise<Workspace>>();
    return Promise.all(files.map((file) => placeOf(file, from, workspaces)));
  }
  const { repository } = await workspaceOf(from);
  return files.map((path) => ({ repository, path }));
}

/** By their paths from the top, whatever the configuration says about differences. Undefined: git does not tell. */
function stagedFiles(): string[] | undefined {
  try {
    const listed = execFileSync(
      "git",
      ["diff", "--cached", "--name-only", "--no-renames", "--no-relative", "--ignore-submodules=none", "-z"],
      {
        encoding: "utf8",
        maxBuffer: 256 * 1024 * 1024,
      },
    );
    return listed.split("\0").filter((file) => file !== "");
  } catch (error) {
    say(`guildhall guard: git does not tell which files are committed (${harmless((error as Error).message)}); the commit goes on`);
    return undefined;
  }
}

function inWords({ who, held }: GuardAnswer): string {
  const lines = held.map(({ path, holder, resource, expiresAt }) => {
    const through = resource.endsWith(`/${path}`) ? "" : ` (as ${resource})`;
    return `${path} is claimed by ${holder}${through} until ${new Date(expiresAt).toISOString()}.`;
  });
  const you = who === null ? "It is not known which agent you are; set GUILDHALL_NAME if one of these claims is yours." : `You are ${who}.`;
  return harmless([...lines, `${you} Do not write these now: ask the holder by mail, wait, or work on something else.`].join("\n"));
}
