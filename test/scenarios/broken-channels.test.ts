import { expect, onTestFinished, test } from "vitest";
import type { ChannelView } from "../../src/contract/channels.ts";
import { modelServer } from "../model-server.ts";
import type { StandIn } from "../platforms/stand-in.ts";
import { telegramStandIn } from "../platforms/telegram.ts";
import { webhookStandIn } from "../platforms/webhook.ts";
import { tcpProxy } from "../tcp-proxy.ts";
import { eventsUntilNow } from "./channel-suite.ts";
import { Home } from "./guildhall.ts";

const SOON = { timeout: 20_000, interval: 20 };
const GROUP = "-100123456";
const FLOOD = 60;
const WAITING = 5;

/**
 * One daemon with an account whose token is wrong, one whose network is gone, one with a flood in one of its chats, and one that is well.
 * While the others stay broken, each chat that is well is answered.
 */
test("a broken token, a lost network and a flood in one chat are nobody else's trouble", { timeout: 60_000 }, async () => {
  const [well, cut, wrong, flooded] = await Promise.all([
    webhookStandIn(),
    telegramStandIn({ token: "2222:AAstandInTokenOfTheBotItself_0123456" }),
    telegramStandIn({ token: "3333:AAstandInTokenOfTheBotItself_0123456" }),
    telegramStandIn(),
  ]);
  const model = await modelServer(({ body }) => {
    const said = JSON.stringify(body.messages.at(-1).content);
    return said.includes("flood") ? { text: "much", delayMs: 300 } : `heard ${/echo (\w+)/.exec(said)?.[1]}.`;
  });
  const network = await tcpProxy(Number(new URL(String(cut.account.api_url)).port));
  const common = { allow: ["7", "8"], receipts: "none", stream: false, require_mention: false };
  const home = new Home(
    JSON.stringify({
      providers: { test: { type: "openai-compatible", base_url: model.url } },
      agents: { main: { model: "test/echo" } },
      limits: { waiting_per_chat: WAITING },
      channels: {
        webhook: { ...well.account, ...common },
        telegram: {
          ...common,
          accounts: {
            cut: { ...cut.account, api_url: `http://127.0.0.1:${network.port}` },
            wrong: wrong.account,
            flooded: flooded.account,
          },
        },
      },
    }),
  );
  onTestFinished(async () => {
    await home.remove();
    await network.close();
    await Promise.all([well, cut, wrong, flooded, model].map((each) => each.close()));
  });
  const daemon = await home.start();
  well.attach(daemon.url);
  const state = async (account: string): Promise<ChannelView | undefined> => {
    const { channels } = (await (await daemon.fetch("/api/channels")).json()) as { channels: ChannelView[] };
    return channels.find((view) => view.account === account);
  };
  const answered = async (standIn: StandIn, word: string, how: Parameters<StandIn["say"]>[1] = {}): Promise<void> => {
    await standIn.say(`echo ${word}`, how);
    const times = (): number => standIn.accepted.filter(({ text }) => text === `heard ${word}.`).length;
    await expect.poll(times, { ...SOON, message: `an answer to ${word}` }).toBe(1);
  };
  for (const account of ["cut", "wrong", "flooded"]) await expect.poll(async () => (await state(account))?.state, SOON).toBe("connected");
  await answered(cut, "first");
  await answered(wrong, "first");

  // The token is taken back, the network is gone in the middle of a poll, and somebody will not stop talking.
  wrong.trouble("bad token");
  await wrong.say("echo forbidden");
  network.onClientData = () => "withhold";
  network.cutAll();
  await cut.say("echo unheard");
  for (let index = 0; index < FLOOD; index++) await flooded.say(`flood ${index}`, { group: GROUP });
  await expect.poll(async () => (await state("wrong"))?.state, SOON).toBe("refused");

  for (let index = 0; index < 10; index++) {
    await answered(well, `well${index}`, { peer: index % 2 ? "7" : "8" });
    await answered(flooded, `beside${index}`);
  }
  expect(await state("wrong")).toMatchObject({ state: "refused", problem: expect.stringContaining("token") });
  expect(wrong.accepted.map(({ text }) => text)).toEqual(["heard first."]);
  expect(cut.accepted.map(({ text }) => text)).toEqual(["heard first."]);
  // Of the flood, what could not wait was refused, and nothing has disappeared.
  const inGroup = (): number => flooded.shown(GROUP).length;
  const refused = async (): Promise<number> => (await eventsUntilNow(daemon)).filter(({ type }) => type === "message.refused").length;
  const all = async (): Promise<boolean> => inGroup() + (await refused()) >= FLOOD;
  await expect.poll(all, { timeout: 30_000, interval: 200 }).toBe(true);
  expect(inGroup() + (await refused())).toBe(FLOOD);
  expect(await refused()).toBeGreaterThan(FLOOD / 2);

  network.onClientData = () => "pass";
  network.cutAll();
  await expect.poll(() => cut.accepted.at(-1)?.text, SOON).toBe("heard unheard.");
  for (const standIn of [well, cut, flooded, wrong]) expect(standIn.complaints).toEqual([]);
});
