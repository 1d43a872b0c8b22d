import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { accountsOf, type ChannelAccount, channelsConfig } from "../../../contract/channels.ts";
import { systemClock } from "../../../kernel/clock.ts";
import { systemRandom } from "../../../kernel/random.ts";
import { webhookChannel } from "./webhook-channel.ts";

const log = { info: () => {}, warn: () => {}, error: () => {} };

test("who is told to end before it has begun ends at once", async () => {
  const [account] = accountsOf(channelsConfig.parse({ webhook: { secret: randomBytes(32).toString("base64") } }));
  const channel = webhookChannel(account as ChannelAccount, { log, clock: systemClock, random: systemRandom, longestWaitMs: 1_000 });
  const said: string[] = [];
  const inbound = {
    cursor: null,
    stillOurs: () => true,
    take: async () => {},
    connected: (name: string) => void said.push(name),
    disconnected: () => {},
  };
  await channel.listen(inbound, AbortSignal.abort());
  expect(said).toEqual([]);
});
