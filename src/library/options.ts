import type { z } from "zod";
import { ClientError } from "../client/client-error.ts";
import type { configSchema } from "../contract/config.ts";
import { nodeLabels, nodeName } from "../contract/nodes.ts";
import type { ChannelPlugin } from "../kernel/channel-plugin.ts";
import type { AnyTool } from "./define-tool.ts";

/** What stands in `guildhall.yaml`, as a value. */
export type GuildhallConfig = z.input<typeof configSchema>;

export interface GuildhallOptions {
  /** The config itself, or the path of its file; without it, `guildhall.yaml` in the home. */
  readonly config?: GuildhallConfig | string;
  /** Where everything is kept; `$GUILDHALL_HOME` or `~/.guildhall` by default. */
  readonly home?: string;
  /** Tools of your program, under the same rules as the built-in ones. */
  readonly tools?: readonly AnyTool[];
  /** Channels of your program, beside and before the built-in ones. */
  readonly channels?: readonly ChannelPlugin[];
  readonly host?: string;
  /** By default what the config says; with a config that is a value and says nothing, a free one. */
  readonly port?: number;
  /** What other nodes on the same PostgreSQL know this one by; `$GUILDHALL_NODE_NAME` or the machine's name by default. */
  readonly name?: string;
  /** What `nodes:` of an agent may name besides. */
  readonly labels?: readonly string[];
  /** What is written to the error stream; `warn` by default. */
  readonly log?: "debug" | "info" | "warn" | "error";
}

const LOG = ["debug", "info", "warn", "error"];
const isText = (value: unknown): boolean => typeof value === "string" && value !== "";
const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

/** What each must be, and in words. */
const EXPECTED: Readonly<Record<keyof GuildhallOptions, readonly [(value: unknown) => boolean, string]>> = {
  config: [(value) => isText(value) || isObject(value), "a config, or the path of a file"],
  home: [isText, "the path of a folder"],
  tools: [Array.isArray, "a list of tools"],
  channels: [Array.isArray, "a list of channels"],
  host: [isText, "a name or an address of this machine"],
  port: [(value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535, "a number from 0 to 65535"],
  name: [(value) => nodeName.safeParse(value).success, "1 to 63 letters, digits, dots, dashes and underscores"],
  labels: [(value) => nodeLabels.safeParse(value).success, "a list of at most 32 words"],
  log: [(value) => LOG.includes(value as string), LOG.join(", ")],
};

/** What would be ignored, or taken for something else, is refused: somebody counts on it. */
export function checkOptions(options: unknown): void {
  if (!isObject(options)) throw new ClientError("usage.wrong", "createGuildhall takes an object with options");
  const known = Object.keys(EXPECTED);
  const unknown = Object.keys(options as object).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    throw new ClientError("usage.wrong", `createGuildhall does not know ${unknown.join(", ")}`, { hint: `It takes ${known.join(", ")}.` });
  for (const [key, [fits, words]] of Object.entries(EXPECTED)) {
    const value = (options as Record<string, unknown>)[key];
    if (value !== undefined && !fits(value)) throw new ClientError("usage.wrong", `createGuildhall: ${key} must be ${words}`);
  }
}
