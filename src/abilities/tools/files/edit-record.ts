import { sha256 } from "../../../kernel/canonical-json.ts";
import { isFailure } from "../../../kernel/failure.ts";
import type { Workspace } from "../../../records/workspaces/workspace.ts";
import { sweep } from "../spill.ts";

const FOLDER = ".guildhall/edits";

/** What an edit was about to do, written before it is done: so that a call which is made again knows whether it was. */
export interface EditRecord {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly diff: string;
}

export function recordPath(key: string): string {
  return `${FOLDER}/${sha256(key).slice(0, 32)}.json`;
}

export async function readRecord(workspace: Workspace, key: string): Promise<EditRecord | undefined> {
  try {
    const { path, before, after, diff } = JSON.parse(Buffer.from((await workspace.read(recordPath(key))).bytes).toString("utf8"));
    return { path: String(path), before: String(before), after: String(after), diff: String(diff) };
  } catch (error) {
    // Its programs can write there too: what cannot be read is as if it were not there.
    if (isFailure(error) || error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

export async function writeRecord(workspace: Workspace, key: string, record: EditRecord): Promise<void> {
  await workspace.write(recordPath(key), JSON.stringify(record));
  await sweep(workspace, FOLDER);
}
