import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createGuildhall, type Guildhall, type GuildhallConfig } from "../../src/library/index.ts";
import { type TelegramOptions, type TelegramStandIn, telegramStandIn } from "../platforms/telegram.ts";

const SOON = { timeout: 10_000, interval: 20 };

async function platform(options: TelegramOptions = {}): Promise<TelegramStandIn> {
  const telegram = await telegramStandIn(options);
  onTestFinished(() => telegram.close());
  return telegram;
}

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "guildhall-telegram-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function house(config: GuildhallConfig, home = newHome()): Promise<Guildhall> {
  const running = await createGuildhall({ home, config, log: "error" });
  onTestFinished(() => running.stop());
  return running;
}

test("a private message is answered once, with Telegram's own marks in it", async () => {
  const telegram = await platform();
  await house({ channels: { telegram: { ...telegram.account, allow: ["7"] } } });
  await telegram.say("hello");
  await expect.poll(() => telegram.shown("7").length, SOON).toBe(1);
  expect(telegram.shown("7")[0]?.text).toContain("Hello");
  expect(telegram.complaints).toEqual([]);
});
