import { setTimeout as sleep } from "node:timers/promises";
import type { ChannelAccount } from "../../../contract/channels.ts";
import {
  type Channel,
  type ChatMessage,
  type ChatPlace,
  type Inbound,
  type Mark,
  type Outbound,
  SendTrouble,
} from "../../../kernel/channel.ts";
import type { ChannelParts } from "../../../kernel/channel-plugin.ts";
import { Failure } from "../../../kernel/failure.ts";
import { partsFor } from "../format/parts-for.ts";
import { SlackApi, webOptions } from "./slack-api.ts";
import { messageIn } from "./slack-event.ts";
import { downloadFile, uploadFile } from "./slack-files.ts";
import { signedBody } from "./slack-hook.ts";
import { SlackLookup } from "./slack-lookup.ts";
import { listenBySocket } from "./slack-socket.ts";
import { callsNobody, mentionedIn } from "./slack-text.ts";
import { channelTroubleOf } from "./slack-trouble.ts";

/** Slack cuts at ten times as much, but shows what is longer than this badly. */
const MAX_LENGTH = 4_000;
/** Slack allows about fifty edits a minute, of all messages together. */
const EDIT_EVERY_MS = 2_500;
/** Where nothing keeps a connection open, so often it is asked whether the token still works. */
const CHECK_MS = 60_000;
const OPEN_MS = 10_000;
const EMOJI: Readonly<Record<Mark, string>> = { seen: "eyes", done: "white_check_mark", failed: "x" };

/** An account of Slack: by socket mode where there is an `app_token`, and else by what Slack posts to us. */
export function slackChannel(account: ChannelAccount, parts: ChannelParts, checkMs = CHECK_MS): Channel {
  const api = new SlackApi(account);
  const { app_token: appToken, signing_secret: signingSecret } = account;
  const { clock, log } = parts;
  const names = new SlackLookup<string | null>(clock, null, async (user, signal) => {
    const { user: found } = await api.call(signal, ({ users }) => users.info({ user }));
    return found?.profile?.display_name || found?.real_name || found?.name || null;
  });
  const threads = new SlackLookup(clock, false, async (key, signal) => {
    const [channel = "", ts = ""] = key.split(":");
    const { messages } = await api.call(signal, ({ conversations }) => conversations.replies({ channel, ts, limit: 1, inclusive: true }));
    return mentionedIn(messages?.[0]?.text ?? "").includes((await api.self()).id);
  });
  const heard = async (payload: unknown): Promise<ChatMessage | null> =>
    messageIn(payload, {
      self: await api.self(),
      nameOf: (user) => names.of(user),
      isOurThread: (channel, root) => threads.of(`${channel}:${root}`),
    });

  return {
    // Slack keeps a `client_msg_id` that one sends along, and does not say that it shows the same one only once.
    abilities: { dedupes: false, editEveryMs: EDIT_EVERY_MS, reacts: true, sendsFiles: true },
    listen: async (inbound, signal) => {
      const { name } = await api.whoAmI(signal).catch((error: unknown) => {
        throw channelTroubleOf(error, "token");
      });
      if (!appToken) {
        inbound.connected(name);
        return untilUnwelcome(api, checkMs, signal, inbound);
      }
      const options = { ...webOptions(api.url), timeout: OPEN_MS };
      await together(signal, [
        (ending) => listenBySocket({ appToken, options, name, clock, messageIn: heard }, inbound, ending),
        (ending) => untilUnwelcome(api, checkMs, ending),
      ]);
    },
    ...(signingSecret && !appToken
      ? {
          receive: async (request: Request, inbound: Pick<Inbound, "take">) => {
            const payload = jsonOf(await signedBody(request, signingSecret, clock));
            if (payload.type === "url_verification") return Response.json({ challenge: payload.challenge });
            if (payload.type === "app_rate_limited")
              log.warn("Slack holds back events for an hour: too many", { account: account.account });
            const message = await heard(payload).catch(cannotRead);
            if (message instanceof Response) return message;
            if (message) await inbound.take([message]);
            return new Response(null, { status: 200 });
          },
        }
      : {}),
    partsOf: (text) => partsFor(text, { kind: "slack", maxLength: MAX_LENGTH }).map((part) => ({ ...part, text: callsNobody(part.text) })),
    send: (message, signal) => send(api, message, signal),
    edit: async ({ place, part }, ts, signal) => {
      const text = part?.text ?? "";
      // Left alone, an edit is parsed in another way than a post.
      await api.call(signal, ({ chat }) => chat.update({ channel: place.chat, ts, text, parse: "none", link_names: false }));
    },
    react: (place, ts, mark, signal) => react(api, place, ts, mark, signal),
    download: (file, maxBytes, signal) => downloadFile(api, file, maxBytes, signal),
  };
}

async function send(api: SlackApi, { place, part, file }: Outbound, signal: AbortSignal): Promise<{ readonly id: string }> {
  if (file) return { id: await uploadFile(api, place, file, signal) };
  const message = { channel: place.chat, text: part?.text ?? "", link_names: false, unfurl_links: false, unfurl_media: false };
  const { ts } = await api.call(signal, ({ chat }) =>
    chat.postMessage(place.topic === null ? message : { ...message, thread_ts: place.topic }),
  );
  if (!ts) throw new SendTrouble("unclear", "Slack has not said which message it is");
  return { id: ts };
}

/** One mark at a time: the new one is there before the old one goes. */
async function react(
  api: SlackApi,
  { chat: channel }: ChatPlace,
  timestamp: string,
  mark: Mark | null,
  signal: AbortSignal,
): Promise<void> {
  const item = { channel, timestamp };
  if (mark !== null)
    await unless("already_reacted", () => api.call(signal, ({ reactions }) => reactions.add({ ...item, name: EMOJI[mark] })));
  if (mark === "seen") return;
  const { message } = await api.call(signal, ({ reactions }) => reactions.get({ ...item, full: true }));
  const { id } = await api.self();
  const ours = (message?.reactions ?? []).filter(({ users }) => users?.includes(id)).map(({ name }) => name ?? "");
  const gone = Object.values(EMOJI).filter((name) => ours.includes(name) && (mark === null || name !== EMOJI[mark]));
  for (const name of gone) await unless("no_reaction", () => api.call(signal, ({ reactions }) => reactions.remove({ ...item, name })));
}

/** What is so already need not be done. */
async function unless(code: string, run: () => Promise<unknown>): Promise<void> {
  await run().catch((error: unknown) => {
    if (!(error instanceof SendTrouble && error.message.includes(code))) throw error;
  });
}

/**
 * Asks now and then whether the token still works, and throws when it does not. `told`: who is told when Slack cannot be reached, where
 * no connection shows it.
 */
async function untilUnwelcome(
  api: SlackApi,
  everyMs: number,
  signal: AbortSignal,
  told?: Pick<Inbound, "connected" | "disconnected">,
): Promise<void> {
  for (;;) {
    await sleep(everyMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    try {
      const { name } = await api.whoAmI(signal);
      told?.connected(name);
    } catch (error) {
      const trouble = channelTroubleOf(error, "token");
      if (signal.aborted) return;
      if (trouble.kind === "refused") throw trouble;
      told?.disconnected(trouble.message);
    }
  }
}

/** Until all have ended; the first that ends, ends the others. */
async function together(signal: AbortSignal, runs: readonly ((ending: AbortSignal) => Promise<void>)[]): Promise<void> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  const results = await Promise.allSettled(runs.map((run) => run(ending.signal).finally(end)));
  signal.removeEventListener("abort", end);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

/** Slack sends it again. */
function cannotRead(error: unknown): Response {
  if (!(error instanceof SendTrouble)) throw error;
  return new Response(null, { status: 503 });
}

function jsonOf(body: Buffer): { readonly type?: unknown; readonly challenge?: unknown } {
  try {
    const value: unknown = JSON.parse(body.toString());
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    throw new Failure("request.malformed", "expected JSON");
  }
}
