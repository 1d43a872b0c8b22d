import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigRevisions } from "../records/agents/config-revisions.ts";
import { revisionOf } from "../records/agents/revision.ts";
import { loadSettings, type Settings } from "../settings/load-settings.ts";
import { openStore, type Store } from "../store/store.ts";
import { FileHere } from "./file-here.ts";

let home: string;
let store: Store;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "guildhall-file-"));
  store = await openStore(`sqlite:${join(home, "state.db")}`);
});
afterEach(async () => {
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

const settingsOf = (number: number): Settings => loadSettings({ home }, {}, { text: `agents: { main: {}, of-${number}: {} }\n` });

/** Revisions 1, 2 and 3 were applied; the file was the text of `was`, and is that of `is`; 4 was never applied. */
async function wanted(was: number | null, is: number, runs = 3) {
  const revisions = new ConfigRevisions(store);
  for (const number of [1, 2, 3]) {
    const { configHash: hash, configText: text } = settingsOf(number);
    const said = { hash, text, state: "applied" as const, node: "n", actor: "n1", isWhole: true, changes: [], problems: [] };
    await store.transact("record", (tx) => revisions.recordIn(tx, said), "locked");
  }
  const warned: string[] = [];
  const log = { info: () => {}, warn: (message: string) => void warned.push(message), error: () => {} };
  const read = async (text: string): Promise<Settings> => loadSettings({ home }, {}, { text });
  const parts = { revisions, log, configFile: "guildhall.yaml", load: async () => settingsOf(is), read };
  const file = new FileHere(parts, { hash: was === null ? null : settingsOf(was).configHash });
  const { settings, isEdited } = await file.wanted(revisionOf(settingsOf(runs), runs));
  return { agent: Object.keys(settings.config.agents ?? {})[1], isEdited, warnings: warned.length };
}

test.for([
  ["an old file that becomes a later text, which was replaced meanwhile, brings nothing back", 1, 2, "of-3", false, 1],
  ["one that could not be used, and is old, brings nothing back", null, 2, "of-3", false, 1],
  ["one whose text nobody has ever applied may become an old one", 4, 2, "of-3", false, 1],
  ["an old file that becomes what runs is that", 1, 3, "of-3", true, 0],
  ["an old file that nobody has touched says nothing", 1, 1, "of-3", false, 0],
  ["whoever goes back from what runs is heard", 3, 2, "of-2", true, 0],
  ["whoever goes back from an old text is heard", 2, 1, "of-1", true, 0],
  ["a text that nobody has seen is heard", 1, 4, "of-4", true, 0],
] as const)("%s", async ([, was, is, agent, isEdited, warnings]) => {
  expect(await wanted(was, is)).toEqual({ agent, isEdited, warnings });
});
