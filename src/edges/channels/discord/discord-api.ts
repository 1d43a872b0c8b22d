import { API } from "@discordjs/core/http-only";
import { DiscordAPIError, HTTPError, RateLimitError, REST } from "@discordjs/rest";
import type { ChannelAccount } from "../../../contract/channels.ts";
import { ChannelTrouble, SendTrouble } from "../../../kernel/channel.ts";
import { messageOf } from "../../../kernel/failure.ts";

/** What the client may wait for by itself; whoever must wait longer is told so and can do something else. */
const PATIENCE_MS = 1_000;
const ANSWER_MS = 15_000;
/** Errors of a connection that was never made: nothing has left this machine. */
const NOT_REACHED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** Discord's REST API with the account's token. */
export class DiscordApi {
  readonly rest: REST;
  readonly #account: ChannelAccount;
  readonly #api: API;

  constructor(account: ChannelAccount) {
    this.#account = account;
    this.rest = new REST({
      ...(account.api_url === undefined ? {} : { api: account.api_url.replace(/\/+$/, "") }),
      // Whoever asks decides whether to ask again: a second sending by the client would be known to nobody.
      retries: 0,
      timeout: ANSWER_MS,
      rejectOnRateLimit: ({ timeToReset, retryAfter }) => Math.max(timeToReset, retryAfter) > PATIENCE_MS,
    });
    this.#api = new API(this.rest);
  }

  /** The client throws its token away when it is refused once; the operator may have made it valid since. */
  get ready(): API {
    this.rest.setToken(this.token);
    return this.#api;
  }

  get token(): string {
    const { token, platform, account } = this.#account;
    if (!token) throw new ChannelTrouble("refused", `the account ${platform}/${account} has no token`);
    return token.reveal();
  }
}

/** Why something could not be sent. */
export function sendTrouble(error: unknown): SendTrouble {
  const cause = { cause: error };
  if (error instanceof SendTrouble) return error;
  if (error instanceof RateLimitError) {
    const isWhole = error.global || error.scope === "global";
    return new SendTrouble("later", `Discord asks to wait ${waitOf(error)} ms`, { afterMs: waitOf(error), isWhole, ...cause });
  }
  if (error instanceof DiscordAPIError) {
    if (error.status === 401) return new SendTrouble("refused", TOKEN_REFUSED, { isWhole: true, ...cause });
    return new SendTrouble("refused", `Discord does not take it: ${error.message} (${error.code})`, cause);
  }
  // An answer of their front, which may or may not stand for what is behind it: with the same nonce, asking again does no harm.
  if (error instanceof HTTPError) return new SendTrouble("unclear", `Discord answers ${error.status}`, cause);
  if (isNotReached(error)) return new SendTrouble("later", `Discord cannot be reached: ${messageOf(error)}`, { isWhole: true, ...cause });
  return new SendTrouble("unclear", `no answer from Discord: ${messageOf(error)}`, cause);
}

/** Why the account cannot be used at all, or not now. */
export function channelTrouble(error: unknown): ChannelTrouble {
  if (error instanceof ChannelTrouble) return error;
  const cause = { cause: error };
  if (error instanceof RateLimitError)
    return new ChannelTrouble("cut off", `Discord asks to wait ${waitOf(error)} ms`, { afterMs: waitOf(error), ...cause });
  if (error instanceof DiscordAPIError) {
    if (error.status === 401) return new ChannelTrouble("refused", TOKEN_REFUSED, cause);
    return new ChannelTrouble("refused", `Discord refuses us: ${error.message} (${error.code})`, cause);
  }
  if (error instanceof HTTPError) return new ChannelTrouble("cut off", `Discord answers ${error.status}`, cause);
  return new ChannelTrouble("cut off", `Discord cannot be reached: ${messageOf(error)}`, cause);
}

/** There is no such thing, or none that we may see. */
export function isGone(error: unknown): boolean {
  return error instanceof DiscordAPIError && (error.status === 404 || error.status === 403);
}

export const TOKEN_REFUSED =
  "Discord does not accept the token: copy the bot's token from the developer portal (Bot, Reset Token) into the config";

function waitOf({ timeToReset, retryAfter }: RateLimitError): number {
  return Math.ceil(Math.max(timeToReset, retryAfter));
}

function isNotReached(error: unknown): boolean {
  return error instanceof Error && "code" in error && NOT_REACHED.has(String(error.code));
}
