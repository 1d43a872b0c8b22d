import type { Readable } from "node:stream";
import { Api } from "grammy";
import type { ChannelAccount } from "../../../contract/channels.ts";
import { ChannelTrouble } from "../../../kernel/channel.ts";
import { firstOf } from "../../../kernel/first-of.ts";
import { postCall } from "./post-call.ts";

const OFFICIAL = "https://api.telegram.org";
/** A long poll is one call; whatever takes longer than this has been forgotten by somebody. */
const CALL_MS = 40_000;
/** A file takes its time on a slow line; whoever sends it knows better when to give up. */
const UPLOAD_MS = 180_000;

export interface BotApi {
  /** Whatever is called ends with the signal. `mayPoll` is asked when a poll is about to leave. */
  calls(signal: AbortSignal, mayPoll?: () => boolean): Api;
  /** Where a file lies. It holds the token: not to be shown to anybody. */
  fileUrl(path: string): string;
}

export function openBotApi({ token, api_url }: ChannelAccount): BotApi {
  const secret = token?.reveal().trim();
  if (!secret) throw new ChannelTrouble("refused", "there is no token: write the one that @BotFather shows as channels.telegram.token");
  const root = (api_url ?? OFFICIAL).replace(/\/+$/, "");
  return {
    calls: (signal, mayPoll) => {
      const ask = (url: string, asked: Asked) => fetchAnswer(url, asked, signal, mayPoll);
      return new Api(secret, { apiRoot: root, fetch: ask as never });
    },
    fileUrl: (path) => `${root}/file/bot${secret}/${path.split("/").map(encodeURIComponent).join("/")}`,
  };
}

interface Asked {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

/**
 * What the client would fetch by itself, but: an answer that is no answer of a Bot API (of a proxy, say) keeps its status, a redirection
 * does not carry the token elsewhere, and what goes wrong says no address.
 */
async function fetchAnswer(url: string, asked: Asked, given: AbortSignal, mayPoll?: () => boolean): Promise<{ json(): Promise<unknown> }> {
  const { headers, body } = asked;
  const { signal, over } = firstOf([given], typeof body === "string" ? CALL_MS : UPLOAD_MS);
  try {
    const isAllowed = url.endsWith("/getUpdates") ? mayPoll : undefined;
    const { status, text } = await postCall(url, { contentType: headers["content-type"] as string, body, isAllowed }, signal);
    const answer = answerIn(text) ?? otherAnswer(status);
    return { json: async () => answer };
  } finally {
    over();
  }
}

function answerIn(text: string): object | undefined {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null && "ok" in answer ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** Who answers otherwise stands between us and Telegram, which has not heard of it, unless that one speaks of what is behind it. */
function otherAnswer(status: number): object {
  return {
    ok: false,
    error_code: status >= 500 || status === 413 ? status : 503,
    description: `no answer of a Bot API (status ${status})`,
  };
}
