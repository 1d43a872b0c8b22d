import { type FetchFunction, type Logger, LogLevel, WebClient, type WebClientOptions } from "@slack/web-api";
import type { ChannelAccount } from "../../../contract/channels.ts";
import { ChannelTrouble, SendTrouble } from "../../../kernel/channel.ts";
import { firstOf } from "../../../kernel/first-of.ts";
import { sendTroubleOf } from "./slack-trouble.ts";

const API_URL = "https://slack.com/api/";
const CALL_MS = 20_000;

/** What Slack's own client says holds what people write, and all that matters of it comes as an error anyway. */
export const SILENT: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  setLevel: () => {},
  getLevel: () => LogLevel.ERROR,
  setName: () => {},
};

/** Who we are there. `id`: of the bot's user, as mentions name it. */
export interface Self {
  readonly id: string;
  readonly name: string;
  readonly team: string;
}

/** Slack's Web API, as one account. Nothing is tried again in here: whoever asks knows better when. */
export class SlackApi {
  readonly url: string;
  readonly #token: string;
  #self: Promise<Self> | undefined;

  constructor({ token, api_url }: ChannelAccount) {
    if (!token) throw new ChannelTrouble("refused", "Slack wants a token; write the bot token (xoxb-…) under channels.slack.token");
    this.#token = token.reveal();
    this.url = api_url ?? API_URL;
  }

  /** Throws a SendTrouble. */
  async call<Answer>(signal: AbortSignal, ask: (client: WebClient) => Promise<Answer>, ms = CALL_MS): Promise<Answer> {
    const ending = firstOf([signal], ms);
    const within: FetchFunction = async (url, init) => {
      const response = await fetch(url, { ...init, signal: ending.signal } as RequestInit);
      // Slack's client knows no answer to this one.
      if (response.status === 429 && !response.headers.has("retry-after")) throw new SendTrouble("later", "Slack asks to wait");
      return response;
    };
    try {
      // One client for each call, since only its `fetch` can be told when to stop; making one costs a tenth of a millisecond.
      return await ask(new WebClient(this.#token, { ...webOptions(this.url), logger: SILENT, fetch: within }));
    } catch (error) {
      throw sendTroubleOf(error);
    } finally {
      ending.over();
    }
  }

  /** Asked once; a failure is not remembered. */
  self(): Promise<Self> {
    this.#self ??= this.whoAmI().catch((error: unknown) => {
      this.#self = undefined;
      throw error;
    });
    return this.#self;
  }

  /** Whether the token still works. */
  async whoAmI(signal: AbortSignal = new AbortController().signal): Promise<Self> {
    const { user_id: id, user, team_id: team } = await this.call(signal, (client) => client.auth.test());
    // It becomes a part of an expression.
    if (!id || !/^\w+$/.test(id) || !team) throw new SendTrouble("later", "Slack does not say who we are");
    return { id, name: user ?? id, team };
  }

  /** What only somebody with our token may see. It is shown to nobody but Slack, whatever address we were given. */
  async open(address: string | undefined, signal: AbortSignal): Promise<Response> {
    return fetch(this.#own(address), { headers: { authorization: `Bearer ${this.#token}` }, redirect: "error", signal });
  }

  /** Bytes to where Slack wants them; the address is the right to put them there. */
  async put(address: string | undefined, data: Uint8Array, signal: AbortSignal): Promise<Response> {
    return fetch(this.#own(address), { method: "POST", body: data as Uint8Array<ArrayBuffer>, redirect: "error", signal });
  }

  #own(address: string | undefined): URL {
    const own = new URL(this.url);
    const given = address !== undefined && URL.canParse(address) ? new URL(address) : undefined;
    const isOwn = given?.protocol === own.protocol && (given.hostname === own.hostname || given.hostname.endsWith(`.${own.hostname}`));
    if (!isOwn) throw new SendTrouble("refused", "the file does not lie at Slack");
    return given;
  }
}

/** `rejectRateLimitedCalls`: or else it waits in there, as long as it likes, with everything behind it. */
export function webOptions(slackApiUrl: string): WebClientOptions {
  return { slackApiUrl, retryConfig: { retries: 0 }, rejectRateLimitedCalls: true, allowAbsoluteUrls: false };
}
