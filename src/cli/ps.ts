import { setTimeout as sleep } from "node:timers/promises";
import { AgentsClient } from "../client/agents.ts";
import { ChannelsClient } from "../client/channels.ts";
import { ClientError } from "../client/client-error.ts";
import { NodesClient } from "../client/nodes.ts";
import { RunsClient } from "../client/runs.ts";
import type { ChannelView } from "../contract/channels.ts";
import type { OpenRun, OpenRuns } from "../contract/runs.ts";
import { CHANNEL_HEAD, channelRow } from "./channel-words.ts";
import { connectRunning } from "./connect.ts";
import { onInterrupt } from "./interrupts.ts";
import { nodesInWords } from "./node-words.ts";
import { span, table } from "./spans.ts";
import { costOf } from "./task-words.ts";
import { bold, type GlobalOptions, harmless, oneLine, print } from "./terminal.ts";

interface PsOptions extends GlobalOptions {
  readonly agent?: string;
  readonly watch?: boolean;
  /** Who is there instead of what is done. */
  readonly nodes?: boolean;
}

const AGAIN_MS = 1_000;
const SHORT = 60;
const HOME_AND_CLEAR = "\x1b[H\x1b[J";

export async function ps({ agent, watch, nodes, ...options }: PsOptions): Promise<number> {
  const client = await connectRunning(options);
  const runs = new RunsClient(client);
  const lookAtNodes = async (): Promise<string> => {
    const seen = await new NodesClient(client).list();
    return options.json ? JSON.stringify(seen) : nodesInWords(seen, fitting);
  };
  const lookAtRuns = async (): Promise<string> => {
    const open = await runs.open({ agent });
    const channels = await channelsFor(new ChannelsClient(client));
    if (options.json) return JSON.stringify({ ...open, channels });
    return [inWords(open, await absentees(new AgentsClient(client), open)), ...blockOf(channels)].join("\n\n");
  };
  const look = nodes ? lookAtNodes : lookAtRuns;
  if (!watch) {
    print(await look());
    return 0;
  }
  const stop = new AbortController();
  onInterrupt(() => stop.abort());
  const clears = process.stdout.isTTY === true && !options.json;
  while (!stop.signal.aborted) {
    const seen = await look();
    print(clears ? `${HOME_AND_CLEAR}${seen}` : seen);
    await sleep(AGAIN_MS, undefined, { signal: stop.signal }).catch(() => {});
  }
  return 0;
}

/** Whoever may not see them looks at the runs alone. */
async function channelsFor(client: ChannelsClient): Promise<ChannelView[]> {
  try {
    return (await client.list()).channels;
  } catch (error) {
    if (error instanceof ClientError && error.code === "request.forbidden") return [];
    throw error;
  }
}

/** Why agents take no turns although they are to, where some wait. */
async function absentees(client: AgentsClient, { runs }: OpenRuns): Promise<ReadonlyMap<string, string>> {
  if (!runs.some(({ status }) => status === "queued")) return new Map();
  try {
    return new Map((await client.list()).agents.flatMap(({ id, problem }) => (problem === null ? [] : [[id, problem] as const])));
  } catch (error) {
    if (error instanceof ClientError && error.code === "request.forbidden") return new Map();
    throw error;
  }
}

function blockOf(channels: readonly ChannelView[]): string[] {
  if (channels.length === 0) return [];
  const [first, ...others] = table([CHANNEL_HEAD, ...channels.map((view) => channelRow(view))]).split("\n");
  return [[bold(fitting(first ?? "")), ...others.map(fitting)].join("\n")];
}

function inWords({ runs, total }: OpenRuns, problems: ReadonlyMap<string, string>): string {
  if (runs.length === 0) return "nobody does anything now";
  const now = Date.now();
  const head = ["run", "agent", "state", "since", "answers", "tokens", "cost", "does"];
  const more = total > runs.length ? `\nand ${total - runs.length} more` : "";
  const [first, ...others] = table([head, ...runs.map((run) => rowOf(run, now, problems.get(run.agent)))]).split("\n");
  return [bold(fitting(first ?? "")), ...others.map(fitting)].join("\n") + more;
}

/** A row that goes on in the next line is no row. */
function fitting(line: string): string {
  const { isTTY, columns } = process.stdout;
  return isTTY && columns > 0 && line.length > columns ? `${line.slice(0, columns - 1).toWellFormed()}…` : line;
}

function rowOf(
  { id, agent, status, createdAt, startedAt, usage, usageBelow, tasks = 0, calls, input, from }: OpenRun,
  now: number,
  problem: string | undefined,
): string[] {
  // What it has delegated is its cost too.
  const all = usageBelow ?? usage;
  const [call] = calls;
  const others = calls.length > 1 ? ` and ${calls.length - 1} more` : "";
  const does =
    call === undefined
      ? `${status === "running" ? "thinks about" : "is to answer"} ${oneLine(input, SHORT)} (${harmless(from)})${status === "queued" && problem !== undefined ? `; ${harmless(problem)}` : ""}`
      : `${call.state === "asked" ? "asks for" : "runs"} ${harmless(call.tool)} ${oneLine(call.args, SHORT)} ${span(now - call.since)}${others}`;
  return [
    id,
    harmless(agent),
    status,
    span(now - (startedAt ?? createdAt)),
    String(usage?.calls ?? 0),
    all === null ? "0" : String(all.inputTokens + all.outputTokens),
    costOf(all),
    tasks === 0 ? does : `${does}, ${tasks} task${tasks === 1 ? "" : "s"} open`,
  ];
}
