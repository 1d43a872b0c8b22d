import { CREDENTIALS, NEEDED_CREDENTIALS, PLATFORMS } from "../contract/channels.ts";
import { didYouMean, nearest } from "../kernel/nearest.ts";
import { type ConfigPath, type Finding, warningAt } from "./config-problem.ts";
import { isMap, mapAt, valueAt } from "./value-at.ts";

/**
 * Whatever is wrong with an account keeps that account from working, and nothing else: all of it is a warning. `more` are the platforms of
 * the program around us, which knows what they need.
 */
export function channelFindings(value: unknown, more: readonly string[]): Finding[] {
  return Object.entries(mapAt(value, ["channels"])).flatMap(([platform, section]) => {
    // What is no map is the schema's to refuse.
    if (more.includes(platform) || !isMap(section)) return [];
    const needed = Object.hasOwn(NEEDED_CREDENTIALS, platform) && NEEDED_CREDENTIALS[platform as (typeof PLATFORMS)[number]];
    if (!needed) return [unknownPlatform(platform)];
    const top: ConfigPath = ["channels", platform];
    const accounts = Object.entries(mapAt(section, ["accounts"])).filter(([, account]) => isMap(account));
    const named = accounts.map(([name]): ConfigPath => [...top, "accounts", name]);
    // Without accounts of other names, what stands here is one.
    const places = named.length === 0 || CREDENTIALS.some((key) => section[key] !== undefined) ? [top, ...named] : named;
    return places.flatMap((place) => missingAt(value, place, needed));
  });
}

function unknownPlatform(platform: string): Finding {
  const meant = nearest(platform, PLATFORMS);
  return warningAt(
    ["channels", platform],
    "config.unknown_channel",
    `no channel of this name is built in${didYouMean(platform, PLATFORMS)}`,
    meant ? `Write ${meant} instead.` : "It works only inside a program that hands this channel to createGuildhall.",
  );
}

function missingAt(value: unknown, place: ConfigPath, needed: readonly (string | readonly string[])[]): Finding[] {
  return needed.flatMap((one) => {
    const names = typeof one === "string" ? [one] : one;
    if (names.some((name) => valueAt(value, [...place, name]) !== undefined)) return [];
    const wanted = names.join(" or ");
    return [warningAt(place, "config.no_credential", `the account cannot connect without ${wanted}`, `Write ${wanted} here.`)];
  });
}
