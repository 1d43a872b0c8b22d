import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { asFailure } from "../kernel/failure.ts";
import { loadSettings } from "./load-settings.ts";

const home = mkdtempSync(join(tmpdir(), "guildhall-peers-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const load = (text: string) => loadSettings({ home }, {}, { text });

function refusal(text: string): string {
  try {
    load(text);
  } catch (error) {
    return asFailure(error).message;
  }
  throw new Error("it was accepted");
}

test("a delegate elsewhere must be a peer that is there, and the nearest is named", () => {
  const { quarantined } = load("peers: { acme: { url: http://a } }\nagents: { main: { subagents: { agents: [peer:acne] } }, other: {} }");
  expect(quarantined.get("main")?.[0]).toMatchObject({ code: "config.unknown_peer", line: 2, fix: "Write peer:acme." });
  const sound = load("peers: { acme: { url: http://a } }\nagents: { main: { subagents: { agents: [peer:acme, { id: peer:acme }] } } }");
  expect(sound.quarantined.size).toBe(0);
});

test("only agents that are there are published", () => {
  expect(refusal("a2a: { agents: [mian] }")).toContain("main");
  expect(refusal("a2a: { agents: [coder, coderr] }\nagents: { coder: {} }")).toContain("coderr");
  expect(load('a2a: { agents: "*" }').config.a2a.agents).toEqual(["*"]);
  expect(load("").config.a2a).toEqual({ agents: [], max_depth: 2, max_open: 20 });
});

test("a peer's token is a secret, and its address is one", () => {
  const { config, secrets } = load("peers: { acme: { url: http://a, token: a-long-secret-token } }");
  expect(JSON.stringify(config)).not.toContain("a-long-secret-token");
  expect([...secrets.values()].flat().join()).toContain("a-long-secret-token");
  expect(refusal("peers: { acme: { url: ftp://a } }")).toContain("expected an address");
  expect(refusal("peers: { acme: { url: http://a, give_up_after: soon } }")).toContain("duration");
});
