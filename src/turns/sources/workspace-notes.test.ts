import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { systemClock } from "../../kernel/clock.ts";
import { idSource } from "../../kernel/ids.ts";
import { systemRandom } from "../../kernel/random.ts";
import { revisionWithoutFile } from "../../records/agents/revision.ts";
import { Workspaces } from "../../records/workspaces/workspaces.ts";
import type { TurnFacts } from "../open-turn.ts";
import { workspaceNotes } from "./workspace-notes.ts";

const address = { platform: "t", account: "default", guild: null, chat: "c", topic: null, chatType: "dm" as const, peer: "p", roles: [] };
let home: string;
let workspace: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-notes-"));
  workspace = join(home, "agents/main/workspace");
  mkdirSync(workspace, { recursive: true });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function looking(): () => Promise<string | undefined> {
  const revision = revisionWithoutFile(configSchema.parse({ agents: { main: {} } }), home);
  const source = workspaceNotes(() => Workspaces.of(home, { clock: systemClock, newId: idSource(systemClock, systemRandom) }), systemClock);
  const agent = revision.agents.get("main");
  const facts = { agent, revision, run: { address } } as unknown as TurnFacts;
  return async () => {
    const part = await source(facts);
    return part && "text" in part ? part.text : undefined;
  };
}

test("notes are told as soon as they are there, also where there were none for long", async () => {
  const look = looking();
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(workspace, longAgo, longAgo);
  expect(await look()).toBeUndefined();
  expect(await look()).toBeUndefined();
  writeFileSync(join(workspace, "NOTES.md"), "some notes");
  expect(await look()).toBe("Notes in your workspace (NOTES.md):\nsome notes");
  writeFileSync(join(workspace, "AGENTS.md"), "better ones");
  expect(await look()).toContain("better ones");
});

test("notes that come in the moment of the last look are found by the next", async () => {
  const look = looking();
  for (let round = 0; round < 30; round++) {
    await look();
    writeFileSync(join(workspace, "AGENTS.md"), `round ${round}`);
    expect(await look()).toContain(`round ${round}`);
    rmSync(join(workspace, "AGENTS.md"));
  }
});

test("long notes are cut, and say so", async () => {
  writeFileSync(join(workspace, "AGENTS.md"), "x".repeat(100_000));
  const told = await looking()();
  expect(told?.length).toBeLessThan(33_000);
  expect(told).toContain("[The file is longer; only its beginning is told.]");
});
