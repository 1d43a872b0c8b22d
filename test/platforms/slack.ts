import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Deliveries, PostDeliveries, SocketDeliveries } from "./slack-deliveries.ts";
import { SlackWebApi } from "./slack-web-api.ts";
import { SlackWorkspace } from "./slack-workspace.ts";
import type { Saying, Shown, StandIn, Trouble } from "./stand-in.ts";

export interface SlackOptions {
  readonly mode?: "socket" | "http";
  /** As it stands in the config; the default one has the shorter address. */
  readonly name?: string;
  readonly ackMs?: number;
  readonly leaveMs?: number;
  readonly maxConnections?: number;
}

const BOT_TOKEN = "xoxb-1-stand-in-token";
const APP_TOKEN = "xapp-1-stand-in-token";
const SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5";

/** Slack on this machine: its Web API, socket mode or signed posts, one workspace with one app in it. */
export class SlackStandIn implements StandIn {
  readonly platform = "slack";
  readonly account: Readonly<Record<string, unknown>>;
  readonly workspace = new SlackWorkspace();
  readonly sockets: SocketDeliveries;
  readonly posts: PostDeliveries;
  readonly api: SlackWebApi;
  readonly #deliveries: Deliveries;
  readonly #server = createServer();
  readonly #name: string;

  private constructor({ mode = "socket", name = "default", ackMs = 3_000, leaveMs = 10_000, maxConnections = 10 }: SlackOptions) {
    const options = { ackMs, leaveMs, maxConnections };
    this.#name = name;
    this.sockets = new SocketDeliveries(options);
    this.posts = new PostDeliveries(options, SIGNING_SECRET);
    this.#deliveries = mode === "socket" ? this.sockets : this.posts;
    const base = (): string => `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const tokens = { botToken: BOT_TOKEN, appToken: APP_TOKEN };
    this.api = new SlackWebApi(this.workspace, tokens, base, () => this.sockets.ticket());
    this.#server.on("request", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => void this.api.answer(request, response, Buffer.concat(chunks)));
    });
    this.#server.on("upgrade", (request, socket, head) => this.sockets.upgrade(request, socket, head));
    const own = mode === "socket" ? { app_token: APP_TOKEN } : { signing_secret: SIGNING_SECRET };
    this.account = {
      token: BOT_TOKEN,
      ...own,
      get api_url() {
        return `${base()}/api/`;
      },
    };
  }

  static async start(options: SlackOptions = {}): Promise<SlackStandIn> {
    const standIn = new SlackStandIn(options);
    await new Promise<void>((resolve) => standIn.#server.listen(0, "127.0.0.1", resolve));
    return standIn;
  }

  get botId(): string {
    return this.workspace.botId;
  }

  attach(daemonUrl: string): void {
    this.posts.attach(`${daemonUrl}/hooks/slack${this.#name === "default" ? "" : `/${this.#name}`}`);
  }

  async say(text: string, how: Saying = {}): Promise<string> {
    const { ts, events } = this.workspace.say(text, how);
    for (const event of events) this.raise(event);
    return ts;
  }

  /** Something happens in the workspace. */
  raise(event: Readonly<Record<string, unknown>>): void {
    this.#deliveries.put(this.payload(event));
  }

  payload(event: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { team, botId } = this.workspace;
    return {
      type: "event_callback",
      team_id: team,
      api_app_id: "A0APP",
      event,
      event_id: this.workspace.nextId("Ev"),
      event_time: Math.floor(Date.now() / 1_000),
      authorizations: [{ team_id: team, user_id: botId, is_bot: true, is_enterprise_install: false }],
    };
  }

  /** Events that the app has not acknowledged. */
  get open(): number {
    return this.#deliveries.open;
  }

  /** How often the event that came most often was sent. */
  get mostAttempts(): number {
    return Math.max(0, ...this.#deliveries.attempts.values());
  }

  shown(chat: string, topic?: string): readonly Shown[] {
    return this.workspace.shown(chat, topic);
  }

  /** The bot's marks on a message. */
  marks(chat: string, ts: string): string[] {
    const reactions = this.workspace.message(this.workspace.find(chat), ts)?.reactions ?? new Map<string, Set<string>>();
    return [...reactions].filter(([, users]) => users.has(this.botId)).map(([name]) => name);
  }

  get accepted(): readonly Shown[] {
    return this.workspace.accepted;
  }

  get complaints(): readonly string[] {
    return [...this.api.complaints, ...this.sockets.complaints, ...this.posts.complaints];
  }

  trouble(kind: Trouble, times = 1, chat?: string): void {
    this.api.trouble(kind, times, chat);
  }

  async close(): Promise<void> {
    this.#deliveries.close();
    this.sockets.close();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }
}

export function slackStandIn(options: SlackOptions = {}): Promise<SlackStandIn> {
  return SlackStandIn.start(options);
}
