import { type ChannelView, DEFAULT_ACCOUNT } from "../contract/channels.ts";
import { span } from "./spans.ts";
import { harmless, oneLine } from "./terminal.ts";

const NAME_WIDTH = 80;
/** The last of a row: what to do about it stands at its end. */
const PROBLEM_WIDTH = 300;

/** `telegram`, or `telegram/work`. */
export function channelName({ platform, account }: Pick<ChannelView, "platform" | "account">): string {
  return harmless(account === DEFAULT_ACCOUNT ? platform : `${platform}/${account}`);
}

export const CHANNEL_HEAD = ["channel", "state", "since", "waiting", "called", "problem"] as const;

export function channelRow(view: ChannelView, now: number = Date.now()): string[] {
  const { state, since, waiting, oldestMs, name, problem } = view;
  return [
    channelName(view),
    state,
    since === null ? "" : span(now - since),
    waiting === 0 ? "" : `${waiting} for ${span(oldestMs ?? 0)}`,
    name === null ? "" : oneLine(name, NAME_WIDTH),
    problem === null ? "" : oneLine(problem, PROBLEM_WIDTH),
  ];
}
