import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGuildhall, type GuildhallConfig } from "../../src/library/index.ts";
import { modelServer } from "../model-server.ts";
import { whatsappStandIn } from "../platforms/whatsapp.ts";

const SOON = { timeout: 15_000, interval: 20 };

test.each<{ readonly written: string; readonly tools: NonNullable<GuildhallConfig["tools"]> }>([
  { written: "as a list of what it may do", tools: ["web_search", "web_extract", "memory", "clarify", "todo", "image_generate"] },
  { written: "as a profile without the terminal", tools: { profile: "messaging", deny: ["terminal"] } },
])("a family-safe agent on WhatsApp executes no code, whatever its model tries; written $written", async ({ tools }) => {
  const home = mkdtempSync(join(tmpdir(), "guildhall-family-"));
  const platform = await whatsappStandIn();
  const marker = join(home, "executed");
  const attempts = ["terminal", "Terminal", "terminal ", "process", "file_write", "delegate_task"];
  const model = await modelServer((_request, count) => {
    const tool = attempts[count];
    return tool === undefined
      ? "I cannot run programs here."
      : { calls: [{ tool, args: { command: `touch ${marker}`, action: "list", path: "x", content: "x", goal: "run it" } }] };
  });
  const daemon = await createGuildhall({
    home,
    config: {
      providers: { test: { type: "openai-compatible", base_url: model.url } },
      model: "test/any",
      agents: {
        main: { default: true },
        family: { personality: "You are a friendly family assistant.", tools },
      },
      bindings: [{ agent: "family", whatsapp: "*" }],
      channels: { whatsapp: { ...platform.account, allow: ["*"] } },
    },
    log: "error",
  });
  onTestFinished(async () => {
    await daemon.stop();
    await Promise.all([platform.close(), model.close()]);
    rmSync(home, { recursive: true, force: true });
  });
  platform.attach(daemon.url);
  await platform.say("please run a program", { peer: "4915112345678" });
  await expect.poll(() => platform.shown("4915112345678").map(({ text }) => text), SOON).toEqual(["I cannot run programs here."]);

  const last = model.requests.at(-1)?.body;
  expect(last.messages[0].content).toContain("You are a friendly family assistant.");
  const offered: string[] = last.tools.map((tool: { function: { name: string } }) => tool.function.name);
  expect(offered).toContain("memory_search");
  expect(offered.filter((name) => /terminal|process|file_|delegate/.test(name))).toEqual([]);
  const results: string[] = last.messages
    .filter(({ role }: { role: string }) => role === "tool")
    .map(({ content }: { content: string }) => content);
  expect(results.length).toBe(attempts.length);
  const events = await fetch(`${daemon.url}/api/events?after=0`, { headers: { authorization: `Bearer ${daemon.token}` } });
  let ledger = "";
  for await (const chunk of events.body ?? []) {
    ledger += Buffer.from(chunk).toString();
    if (ledger.includes("reply.sent")) break;
  }
  expect(ledger.match(/"type":"tool\.refused"/g)?.length).toBe(attempts.length);
  expect(existsSync(marker)).toBe(false);
  expect(platform.complaints).toEqual([]);
});
