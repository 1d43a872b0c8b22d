import { ChannelsClient } from "../client/channels.ts";
import { ClientError } from "../client/client-error.ts";
import { DEFAULT_ACCOUNT, type PairingView } from "../contract/channels.ts";
import { CHANNEL_HEAD, channelName, channelRow } from "./channel-words.ts";
import { connectRunning } from "./connect.ts";
import { moment, span, table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

export async function listChannels(options: GlobalOptions): Promise<number> {
  const { channels } = await (await clientFor(options)).list();
  if (options.json) print(JSON.stringify({ channels }));
  else if (channels.length === 0) say("there are no channels; write one under `channels:` in guildhall.yaml");
  else print(table([CHANNEL_HEAD, ...channels.map((view) => channelRow(view))]));
  return 0;
}

export async function listPairings(options: GlobalOptions): Promise<number> {
  const { pairings } = await (await clientFor(options)).pairings();
  if (options.json) print(JSON.stringify({ pairings }));
  else if (pairings.length === 0) say("nobody was paired, and nobody holds a code");
  else print(table([["channel", "sender", "state", "messages", ""], ...pairings.map(pairingRow)]));
  return 0;
}

export async function pair(code: string, options: GlobalOptions): Promise<number> {
  const sender = await (await clientFor(options)).pair(code);
  print(options.json ? JSON.stringify(sender) : `${bold(harmless(sender.peer))} is let in on ${channelName(sender)}`);
  return 0;
}

export async function unpair(channel: string, peer: string, options: GlobalOptions): Promise<number> {
  const [platform = "", account = DEFAULT_ACCOUNT, ...more] = channel.split("/");
  if (platform === "" || account === "" || more.length > 0)
    throw new ClientError("usage.wrong", `"${channel}" is no channel`, { hint: "Write its platform, or platform/account." });
  const sender = { platform, account, peer };
  await (await clientFor(options)).unpair(sender);
  print(
    options.json
      ? JSON.stringify({ ...sender, removed: true })
      : `${bold(harmless(peer))} is not let in any more on ${channelName(sender)}`,
  );
  return 0;
}

function pairingRow(pairing: PairingView): string[] {
  const { peer, state, messages, askedAt, expiresAt, pairedAt, pairedBy } = pairing;
  const more =
    state === "paired"
      ? `since ${moment(pairedAt ?? askedAt)} by ${harmless(pairedBy ?? "")}`
      : `has a code, for ${span(Math.max(0, (expiresAt ?? 0) - Date.now()))}`;
  return [channelName(pairing), harmless(peer), state, String(messages), more];
}

async function clientFor(options: GlobalOptions): Promise<ChannelsClient> {
  return new ChannelsClient(await connectRunning(options));
}
