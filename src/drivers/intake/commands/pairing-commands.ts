import { pairSenderIn, type Sender, unpairSenderIn } from "../../../acts/pair-sender.ts";
import { DEFAULT_ACCOUNT } from "../../../contract/channels.ts";
import { Failure } from "../../../kernel/failure.ts";
import { senderName } from "../../../records/channels/channel-accounts.ts";
import type { Command } from "./command.ts";

/** Whoever may try codes could let in whom they like: tries are not counted. */
export const pairCommand: Command = {
  name: "pair",
  takes: "CODE",
  least: 1,
  // People write the two halves as two words.
  most: 2,
  help: "let in whoever was told this code",
  who: "owner",
  run: async (tx, { args, by }, { store }) => ({
    text: `${senderName(await pairSenderIn(store, tx, args.join(""), by))} is let in.`,
  }),
};

export const unpairCommand: Command = {
  name: "unpair",
  takes: "PLATFORM[/ACCOUNT]:SENDER",
  least: 1,
  most: 1,
  help: "no longer let in somebody who was paired",
  who: "owner",
  run: async (tx, { args, by }, { store }) => {
    const sender = senderOf(args[0] as string);
    await unpairSenderIn(store, tx, sender, by);
    return { text: `${senderName(sender)} is not let in any more.` };
  },
};

function senderOf(text: string): Sender {
  const [, platform, account = DEFAULT_ACCOUNT, peer] = /^([^:/]+)(?:\/([^:]+))?:(.+)$/.exec(text) ?? [];
  if (platform === undefined || peer === undefined)
    throw new Failure("usage.wrong", "Write it like this: /unpair telegram:7", {
      hint: "With the name of the account where it is another one: telegram/work:7.",
    });
  return { platform, account, peer };
}
