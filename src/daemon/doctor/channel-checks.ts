import { viewChannels } from "../../acts/view-channels.ts";
import { accountsOf, type ChannelAccount, type ChannelView, DEFAULT_ACCOUNT, missingCredentials } from "../../contract/channels.ts";
import { asFailure } from "../../kernel/failure.ts";
import type { Settings } from "../../settings/load-settings.ts";
import { glanceInto, inspectStore } from "../../store/inspect-store.ts";
import { broken, type Finding, ok, warning } from "./check.ts";

/** A platform that asks to wait is waited for; this long, something is wrong. */
const LONG_MS = 5 * 60_000;

/** Every account on a chat platform: what it lacks, and how it is doing. */
export async function channelChecks({ config, storeLocation }: Settings): Promise<Finding[]> {
  const accounts = accountsOf(config.channels);
  if (accounts.length === 0) return [];
  try {
    const { exists, schema, newest } = await inspectStore(storeLocation);
    const isThere = exists && schema >= newest;
    const views = isThere ? await glanceInto(storeLocation, (reads) => viewChannels(reads, accounts, "off")) : [];
    return accounts.flatMap((account, index) => findingsOf(account, views[index]));
  } catch (error) {
    // What is wrong with the store is told by its own check.
    return [warning("channels", `cannot be looked at: ${asFailure(error).message}`, "See the store.")];
  }
}

function findingsOf(account: ChannelAccount, view: ChannelView | undefined): Finding[] {
  const { platform, account: name } = account;
  const id = `channel.${name === DEFAULT_ACCOUNT ? platform : `${platform}/${name}`}`;
  const place = `channels.${platform}${name === DEFAULT_ACCOUNT ? "" : `.accounts.${name}`}`;
  const missing = missingCredentials(account);
  if (missing.length > 0)
    return [
      warning(id, `it cannot connect without ${missing.join(", ")}`, `Write ${missing.join(", ")} under ${place}; see docs/channels.md.`),
    ];
  if (!view) return [ok(id, "it connects at the first start")];
  return [stateFinding(id, place, view), ...waitingFindings(id, view)];
}

function stateFinding(id: string, place: string, { state, problem, name }: ChannelView): Finding {
  const credentials = `Check what stands under ${place}; what is saved is taken up within a second.`;
  if (state === "refused") return broken(id, `it is refused: ${problem}`, credentials);
  if (state === "cut off")
    return warning(id, `it is cut off and tries again: ${problem}`, "Check the network, and `api_url` where you have set one.");
  if (problem !== null) return warning(id, `it is ${state}; when it was tried last: ${problem}`, credentials);
  return ok(
    id,
    state === "connected" ? `connected${name === null ? "" : ` as ${name}`}` : state === "off" ? "off: no daemon holds it" : state,
  );
}

function waitingFindings(id: string, { waiting, oldestMs }: ChannelView): Finding[] {
  if (oldestMs === null || oldestMs < LONG_MS) return [];
  const found = `${waiting === 1 ? "1 reply waits" : `${waiting} replies wait`}, the oldest for ${Math.round(oldestMs / 60_000)} min`;
  return [
    warning(id, found, "They leave as soon as the platform takes them; after a day they are given up. See `guildhall channel list`."),
  ];
}
