import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGuildhall, type Guildhall, type GuildhallConfig } from "../../src/library/index.ts";
import { PlainPlatform } from "../plain-channel.ts";

const SOON = { timeout: 10_000, interval: 20 };

async function house(config: GuildhallConfig, platform: PlainPlatform): Promise<Guildhall> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-plain-"));
  const running = await createGuildhall({ home, config, channels: [platform.plugin()], log: "error" });
  onTestFinished(async () => {
    await running.stop();
    rmSync(home, { recursive: true, force: true });
  });
  return running;
}

test("a channel of another package brings messages in and replies out, each once", async () => {
  const platform = new PlainPlatform();
  await house({ channels: { plain: { allow: ["7"] } } }, platform);
  await platform.say("m1", "hello");
  await platform.say("m1", "hello");
  await expect.poll(() => platform.sent.length, SOON).toBe(1);
  expect(platform.sent[0]).toMatchObject({
    place: { chat: "7", chatType: "dm" },
    answers: null,
    part: { plain: expect.stringContaining("Hello") },
  });
  await platform.say("m2", "/help");
  await expect.poll(() => platform.sent.length, SOON).toBe(2);
  expect(platform.sent[1]?.part?.plain).toContain("/new");
});

test("whoever is not on the list is told a code, once, and nothing else happens", async () => {
  const platform = new PlainPlatform();
  await house({ channels: { plain: {} } }, platform);
  for (const id of ["s1", "s2", "s3"]) await platform.say(id, "let me in");
  await expect.poll(() => platform.sent.length, SOON).toBe(1);
  expect(platform.sent[0]?.part?.plain).toMatch(/[A-Z2-9]{4}-[A-Z2-9]{4}/);
});
