import { accountsOf, type ChannelAccount, CREDENTIALS } from "../../contract/channels.ts";
import type { Config } from "../../contract/config.ts";
import type { Address } from "../../deciders/routing/address.ts";
import type { Sender } from "../../drivers/dispatch/deliver-reply.ts";
import { sha256 } from "../../kernel/canonical-json.ts";
import type { Channel } from "../../kernel/channel.ts";
import type { ChannelPlugin } from "../../kernel/channel-plugin.ts";
import type { Clock } from "../../kernel/clock.ts";
import { Failure } from "../../kernel/failure.ts";
import { runOfMessage } from "../../records/sessions/inbox.ts";
import { accountKey } from "../../records/sessions/outbox.ts";
import { AccountLeases } from "./account-leases.ts";
import { AccountRunner, type RunnerParts } from "./account-runner.ts";
import { longestWaitMs } from "./held-account.ts";

export interface HubParts extends Omit<RunnerParts, "leases"> {
  readonly clock: Clock;
  /** How long an account is this node's without a word of it. */
  readonly leaseMs: number;
  readonly plugins: readonly ChannelPlugin[];
  /** False: what people say stays at the platforms until somebody else takes it; replies are sent all the same. */
  readonly listens?: boolean;
}

/** A platform may ask for minutes; one that asks for days is asked again. */
const LONGEST_PAUSE_MS = 60 * 60_000;

interface Entry {
  account: ChannelAccount;
  /** What a connection depends on: with another one, it is made anew. */
  readonly identity: string;
  readonly runner: AccountRunner;
  channel: Promise<Channel> | undefined;
  /** By the clock. Nothing leaves before. */
  pausedUntil: number;
}

/** Every account of the config: connected by one node, able to send from all. */
export class ChannelHub {
  readonly #parts: HubParts;
  readonly #leases: AccountLeases;
  readonly #entries = new Map<string, Entry>();
  #isStopped = false;

  constructor(parts: HubParts) {
    this.#parts = parts;
    this.#leases = new AccountLeases(parts);
  }

  /** Opens what is new, closes what is gone, and makes anew what has other credentials. */
  async adopt(channels: Config["channels"]): Promise<void> {
    if (this.#isStopped) return;
    const wanted = new Map(accountsOf(channels).map((account) => [accountKey(account), account]));
    const gone = [...this.#entries].filter(([key, { identity }]) => {
      const account = wanted.get(key);
      return !account || identityOf(account) !== identity;
    });
    // One that is made anew stays until then: a reply must not find that there is no such account.
    for (const [key] of gone) if (!wanted.has(key)) this.#entries.delete(key);
    await Promise.all(gone.map(([, { runner }]) => runner.stop()));
    for (const [key, account] of wanted) {
      const known = this.#entries.get(key);
      if (known?.identity === identityOf(account)) known.account = account;
      else if (!this.#isStopped) this.#add(key, account);
    }
  }

  get accounts(): readonly ChannelAccount[] {
    return [...this.#entries.values()].map(({ account }) => account);
  }

  /** Whether replies to this address are brought by a channel of ours. */
  delivers(address: Pick<Address, "platform" | "account">): boolean {
    const account = this.#entries.get(accountKey(address))?.account;
    return account !== undefined && this.#pluginOf(account)?.sends?.(account) !== false;
  }

  async senderOf(address: Pick<Address, "platform" | "account">): Promise<Sender | undefined> {
    const entry = this.#entries.get(accountKey(address));
    if (!entry) return undefined;
    const { clock } = this.#parts;
    return {
      channel: await this.#channelOf(entry),
      account: entry.account,
      pausedMs: () => Math.max(0, entry.pausedUntil - clock.now()),
      pause: (ms) => {
        entry.pausedUntil = Math.max(entry.pausedUntil, clock.now() + Math.min(ms, LONGEST_PAUSE_MS));
      },
    };
  }

  /** What a platform posts to us. */
  async receive(platform: string, account: string, request: Request): Promise<Response> {
    const entry = this.#entries.get(accountKey({ platform, account }));
    // One that cannot be opened looks like none: why is told where it is held.
    const channel = entry && (await this.#channelOf(entry).catch(() => undefined));
    if (!entry || !channel?.receive) throw new Failure("request.not_found", "there is nothing here");
    return channel.receive(request, {
      take: (messages, cursor) => {
        if (cursor !== undefined) throw new Failure("internal.bug", "what is posted has no cursor");
        return this.#parts.receive(entry.account, messages, async () => {});
      },
      runOf: (externalId) => runOfMessage(this.#parts.store.read, { platform, account, externalId }),
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#entries.values()].map(({ runner }) => runner.stop()));
    await this.#leases.settled();
  }

  #add(key: string, account: ChannelAccount): void {
    const entry: Entry = {
      account,
      identity: identityOf(account),
      runner: new AccountRunner(
        { ...this.#parts, leases: this.#leases },
        account,
        () => entry.account,
        () => this.#channelOf(entry),
      ),
      channel: undefined,
      pausedUntil: 0,
    };
    this.#entries.set(key, entry);
    if (this.#parts.listens !== false) entry.runner.start();
  }

  #pluginOf(account: ChannelAccount): ChannelPlugin | undefined {
    return this.#parts.plugins.find(({ platform }) => platform === account.platform);
  }

  /** One that could not be opened is tried again by whoever asks next. */
  #channelOf(entry: Entry): Promise<Channel> {
    const { log, clock, random, leaseMs } = this.#parts;
    entry.channel ??= (async () => {
      const plugin = this.#pluginOf(entry.account);
      if (!plugin) throw new Failure("channel.unknown", `there is no channel for the platform "${entry.account.platform}"`);
      return plugin.open(entry.account, { log, clock, random, longestWaitMs: longestWaitMs(leaseMs) });
    })().catch((error: unknown) => {
      entry.channel = undefined;
      throw error;
    });
    return entry.channel;
  }
}

function identityOf(account: ChannelAccount): string {
  const shown = CREDENTIALS.map((key) => {
    const value = account[key];
    return typeof value === "object" ? value.reveal() : (value ?? null);
  });
  return sha256(JSON.stringify([account.api_url ?? null, ...shown]));
}
