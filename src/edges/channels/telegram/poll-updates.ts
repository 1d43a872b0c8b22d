import { setTimeout as sleep } from "node:timers/promises";
import type { Api } from "grammy";
import type { Update } from "grammy/types";
import type { Inbound } from "../../../kernel/channel.ts";
import type { ChannelParts } from "../../../kernel/channel-plugin.ts";
import type { Log } from "../../../kernel/log.ts";
import { readUpdates } from "./read-updates.ts";
import { channelTroubleOf, refusalIn } from "./telegram-trouble.ts";

const ALLOWED = ["message", "channel_post"] as const;
/** Of a server that does not hold polls at all, so much must pass between two. */
const AT_LEAST_MS = 500;
/** The pictures of an album come one by one; the next is there within this time. */
const ALBUM_MS = 300;
/** Whoever sends one album after another does not keep the others waiting. */
const ALBUM_ROUNDS = 3;

/** Which updates of which bot are ours already. With a token of another bot, the numbers of the first mean nothing. */
interface Cursor {
  readonly bot: number;
  readonly offset: number;
}

/**
 * Takes what is said until the signal aborts. Telegram forgets an update as soon as it is asked for the one after it: that happens only
 * once `take` has committed both the messages and the number of the next. A poll leaves only as long as the account is ours: `api` sees to it.
 */
export async function listen(api: Api, parts: ChannelParts, inbound: Inbound, signal: AbortSignal): Promise<void> {
  const { log, clock } = parts;
  try {
    const me = await api.getMe().catch(throwTrouble);
    let offset = offsetIn(inbound.cursor, me.id);
    // The first does not wait: it tells whether we may poll.
    for (let timeout = 0; !signal.aborted; timeout = parts.longestWaitMs / 1_000) {
      const began = clock.now();
      const updates = await pollWhole(api, offset, timeout, log, signal).catch(throwTrouble);
      if (timeout === 0) inbound.connected(`@${me.username}`);
      const last = updates.at(-1);
      if (last) {
        offset = last.update_id + 1;
        await inbound.take(readUpdates(updates, me, log), { bot: me.id, offset } satisfies Cursor);
      } else if (timeout > 0 && clock.now() - began < AT_LEAST_MS) await sleep(AT_LEAST_MS, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** What ends in the middle of an album is asked for once more: as long as nothing is confirmed, all of it comes again, with what has followed. */
async function pollWhole(api: Api, offset: number | undefined, timeout: number, log: Log, signal: AbortSignal): Promise<Update[]> {
  let updates = await poll(api, offset, timeout, log);
  for (let round = 0, known = 0; round < ALBUM_ROUNDS && updates.length > known && endsInAlbum(updates); round++) {
    known = updates.length;
    await sleep(ALBUM_MS, undefined, { signal });
    updates = await poll(api, offset, 0, log);
  }
  return updates;
}

function endsInAlbum(updates: readonly Update[]): boolean {
  return updates.at(-1)?.message?.media_group_id !== undefined;
}

async function poll(api: Api, offset: number | undefined, timeout: number, log: Log): Promise<Update[]> {
  const ask = (): Promise<Update[]> =>
    api.getUpdates({ timeout, limit: 100, allowed_updates: ALLOWED, ...(offset === undefined ? {} : { offset }) });
  try {
    return await ask();
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal?.status !== 409 || !/webhook/i.test(refusal.words)) throw error;
    // What waits for the webhook comes to us then.
    log.warn("the bot had a webhook, which is taken away: its messages come here now", { platform: "telegram" });
    await api.deleteWebhook({ drop_pending_updates: false });
    return ask();
  }
}

function offsetIn(cursor: unknown, bot: number): number | undefined {
  const known = cursor as Partial<Cursor> | null;
  return known?.bot === bot && Number.isSafeInteger(known.offset) ? known.offset : undefined;
}

function throwTrouble(error: unknown): never {
  throw channelTroubleOf(error);
}
