import { AgentsClient } from "../client/agents.ts";
import type { ConfigRevision, ConfigRevisionList } from "../contract/agents.ts";
import { connectRunning } from "./connect.ts";
import { span, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, oneLine, print } from "./terminal.ts";

interface RevisionsOptions extends GlobalOptions {
  readonly limit: number;
}

const HASH_SHOWN = 12;
const CHANGES_WIDTH = 100;

export async function showRevisions({ limit, ...options }: RevisionsOptions): Promise<number> {
  const seen = await new AgentsClient(await connectRunning(options)).revisions(limit);
  if (options.json) print(JSON.stringify(seen));
  else {
    const head = ["revision", "when", "node", "hash", "", "changes"];
    print(`${harmless(currentInWords(seen.current))}\n`);
    print(harmless(table([head, ...seen.revisions.map((revision) => rowOf(revision, Date.now()))])));
  }
  return 0;
}

export async function pull(options: GlobalOptions): Promise<number> {
  const { pullConfig } = await import("../daemon/local-config.ts");
  const pulled = await pullConfig(options);
  if (options.json) print(JSON.stringify(pulled));
  else if (!pulled.changed) print(harmless(`${pulled.file} holds no older revision: nothing was changed`));
  else
    print(
      harmless(`${pulled.file} holds the newest revision now; what it said before is in ${pulled.backup ?? "no file: there was none"}`),
    );
  return 0;
}

function currentInWords({ number, hash, file, file_state, file_revision, problem }: ConfigRevisionList["current"]): string {
  const saysOfFile = {
    current: `${file} is what runs`,
    older: `${file} is not what runs: its text is that of revision ${file_revision}, and older (to edit it, first: guildhall config pull)`,
    unknown: `${file} is not what runs: no node has applied its text (see: guildhall config check)`,
    none: `there is no ${file} that could be read: what runs is kept in the store; where no file was ever applied, everything is as by default`,
  }[file_state];
  return [
    `this node runs on ${bold(`revision ${number}`)} (${hash.slice(0, HASH_SHOWN)})`,
    saysOfFile,
    ...(problem === null ? [] : [`problem: ${problem}`]),
  ].join("\n");
}

function rowOf({ number, at, node, hash, state, shared, changes, quarantined }: ConfigRevision, now: number): string[] {
  const remarks = [state, ...(shared || state === "rejected" ? [] : ["not shared"]), ...quarantined.map((id) => `${id} quarantined`)];
  return [
    String(number),
    `${span(Math.max(0, now - at))} ago`,
    node,
    hash.slice(0, HASH_SHOWN),
    remarks.join(", "),
    oneLine(changes.join("; "), CHANGES_WIDTH),
  ];
}
