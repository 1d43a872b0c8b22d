import { z } from "zod";
import { type Secret, secret } from "./secret.ts";
import { identifier } from "./text.ts";

/** Those that are built in. A program that has us inside may bring others. */
export const PLATFORMS = ["telegram", "discord", "slack", "whatsapp", "webhook"] as const;

const url = z.url({ protocol: /^https?$/, error: "expected an address such as http://127.0.0.1:8000" });

/**
 * What shows the platform who we are. Which of them a platform wants is checked where the file is read: there a mistake has a place.
 * `app_token`: of Slack's socket mode; `signing_secret`: of Slack's HTTP mode; `app_secret`, `verify_token`, `phone_number_id`: of WhatsApp;
 * `secret`, `url`: of webhooks, to sign with and to post replies to.
 */
const credentials = {
  token: secret.optional(),
  app_token: secret.optional(),
  signing_secret: secret.optional(),
  app_secret: secret.optional(),
  verify_token: secret.optional(),
  phone_number_id: z.union([z.string().min(1).max(100), z.int().transform(String)]).optional(),
  secret: secret.optional(),
  url: url.optional(),
};
export const CREDENTIALS = Object.keys(credentials) as readonly (keyof typeof credentials)[];

/** Without which an account cannot be opened; of a list, one of them. */
export const NEEDED_CREDENTIALS: Readonly<Record<(typeof PLATFORMS)[number], readonly (string | readonly string[])[]>> = {
  telegram: ["token"],
  discord: ["token"],
  slack: ["token", ["app_token", "signing_secret"]],
  whatsapp: ["token", "phone_number_id", "app_secret", "verify_token"],
  webhook: ["secret"],
};

/** What an account cannot be opened without and does not have, in words. What another platform needs, it knows itself. */
export function missingCredentials(account: ChannelAccount): string[] {
  const needed = Object.hasOwn(NEEDED_CREDENTIALS, account.platform)
    ? NEEDED_CREDENTIALS[account.platform as (typeof PLATFORMS)[number]]
    : [];
  return needed.flatMap((one) => {
    const names = typeof one === "string" ? [one] : one;
    return names.some((name) => account[name as (typeof CREDENTIALS)[number]] !== undefined) ? [] : [names.join(" or ")];
  });
}

export const DELIVERIES = ["at_least_once", "at_most_once"] as const;
export const RECEIPTS = ["groups", "all", "none"] as const;
const MEGABYTE = 1_048_576;

/** How an account behaves. What is absent is as it is above it, or else as `accountsOf` says. */
const behaviour = {
  /** Whose messages are taken: sender ids, or "*"; empty: only paired ones. */
  allow: z
    .array(z.union([z.string().max(256), z.int().transform(String)]))
    .max(10_000)
    .optional(),
  require_mention: z.boolean().optional(),
  api_url: url.optional(),
  delivery: z.enum(DELIVERIES).optional(),
  /** Replies are shown while they are written, where the platform lets us edit. */
  stream: z.boolean().optional(),
  /** Where messages are marked as seen. */
  receipts: z.enum(RECEIPTS).optional(),
  /** The largest file that is taken in. */
  max_file_mb: z.int().min(0).max(2_000).optional(),
};
const account = { ...credentials, ...behaviour };

export const channelConfig = z.strictObject({
  ...account,
  accounts: z.record(identifier.max(128), z.strictObject(account)).optional(),
});
export const channelsConfig = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]*$/, "a channel's name is lowercase letters, digits, _ and -"),
  channelConfig,
);

export type Delivery = (typeof DELIVERIES)[number];
export type Receipts = (typeof RECEIPTS)[number];

/** One account as it is to be, nothing left open. */
export interface ChannelAccount {
  readonly platform: string;
  readonly account: string;
  readonly token?: Secret | undefined;
  readonly app_token?: Secret | undefined;
  readonly signing_secret?: Secret | undefined;
  readonly app_secret?: Secret | undefined;
  readonly verify_token?: Secret | undefined;
  readonly phone_number_id?: string | undefined;
  readonly secret?: Secret | undefined;
  readonly url?: string | undefined;
  readonly api_url?: string | undefined;
  readonly allow: readonly string[];
  readonly requireMention: boolean;
  readonly delivery: Delivery;
  readonly stream: boolean;
  readonly receipts: Receipts;
  readonly maxFileBytes: number;
}

const MAX_FILE_MB = 20;
export const DEFAULT_ACCOUNT = "default";

/** Every account, by platform and name. The credentials above the accounts are those of `default`; how it behaves counts for all of them. */
export function accountsOf(channels: z.output<typeof channelsConfig>): ChannelAccount[] {
  return Object.entries(channels).flatMap(([platform, { accounts, ...top }]) => {
    const own = CREDENTIALS.some((key) => top[key] !== undefined);
    const named = Object.entries(accounts ?? {});
    const written = own || named.length === 0 ? [[DEFAULT_ACCOUNT, top] as const, ...named] : named;
    return written.map(([name, given]) => resolved(platform, name, given, top));
  });
}

type Written = z.output<z.ZodObject<typeof account>>;

function resolved(platform: string, name: string, given: Written, above: Written): ChannelAccount {
  return {
    ...Object.fromEntries(CREDENTIALS.map((key) => [key, given[key]])),
    platform,
    account: name,
    api_url: given.api_url ?? above.api_url,
    allow: given.allow ?? above.allow ?? [],
    requireMention: given.require_mention ?? above.require_mention ?? true,
    delivery: given.delivery ?? above.delivery ?? "at_least_once",
    stream: given.stream ?? above.stream ?? true,
    receipts: given.receipts ?? above.receipts ?? "groups",
    maxFileBytes: (given.max_file_mb ?? above.max_file_mb ?? MAX_FILE_MB) * MEGABYTE,
  };
}

export const CHANNEL_STATES = ["off", "connecting", "connected", "cut off", "refused"] as const;
export type ChannelState = (typeof CHANNEL_STATES)[number];

/** `refused`: the platform does not accept us, and only the operator can help. `waiting`: replies that have not arrived yet. */
export const channelView = z.object({
  platform: z.string(),
  account: z.string(),
  /** What we are called there; null: not known yet. */
  name: z.string().nullable(),
  state: z.enum(CHANNEL_STATES),
  problem: z.string().nullable(),
  /** When its state was told last; null: it never was. */
  since: z.number().nullable(),
  node: z.string().nullable(),
  waiting: z.int(),
  /** How long the oldest of them has been waiting. */
  oldestMs: z.number().nullable(),
});
export type ChannelView = z.output<typeof channelView>;
export const channelList = z.object({ channels: z.array(channelView) });
export type ChannelList = z.output<typeof channelList>;

/** Somebody who has written and is not on the list. */
export const pairingView = z.object({
  platform: z.string(),
  account: z.string(),
  peer: z.string(),
  state: z.enum(["pending", "paired"]),
  /** How often they have written since. */
  messages: z.int(),
  askedAt: z.number(),
  expiresAt: z.number().nullable(),
  pairedAt: z.number().nullable(),
  pairedBy: z.string().nullable(),
});
export type PairingView = z.output<typeof pairingView>;
export const pairingList = z.object({ pairings: z.array(pairingView) });
export type PairingList = z.output<typeof pairingList>;

export const pairingCode = z.strictObject({ code: z.string().min(1).max(64) });
export const pairedSender = z.object({ platform: z.string(), account: z.string(), peer: z.string() });
export type PairedSender = z.output<typeof pairedSender>;
export const removedPairing = pairedSender.extend({ removed: z.literal(true) });
