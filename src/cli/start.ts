import { setFlagsFromString } from "node:v8";
import { channelName } from "./channel-words.ts";
import { bold, type GlobalOptions, print, say } from "./terminal.ts";

export interface StartOptions extends GlobalOptions {
  readonly host?: string;
  readonly port?: number;
  readonly name?: string;
  readonly labels?: readonly string[];
}

const AGENTS_SHOWN = 12;

export async function start(options: StartOptions): Promise<never> {
  const [{ startDaemon }, { untilSignal }] = await Promise.all([import("../daemon/daemon.ts"), import("../daemon/until-signal.ts")]);
  const asked = untilSignal();
  const daemon = await startDaemon(options);
  // In some library, of some connection: no reason to let everybody else down.
  process.on("unhandledRejection", (reason) => daemon.report(reason));
  // Counted from the start of the process: what the newcomer has waited.
  const readyMs = Math.round(performance.now());
  // The launcher keeps it from growing until here; what the work needs, it may have.
  setFlagsFromString("--semi-space-growth-factor=2");
  const { version, url, agents, store, home, channels } = daemon;
  if (options.json) print(JSON.stringify({ version, url, pid: process.pid, readyMs, home, store, agents, channels }));
  else {
    print(
      [
        "",
        `  ${bold(`Guildhall ${version}`)}   ready in ${readyMs} ms`,
        `  Open      ${url}`,
        ...agents.slice(0, AGENTS_SHOWN).map((agent, index) => `  ${index === 0 ? "Agents" : "      "}    ${agentLine(agent)}`),
        ...(agents.length > AGENTS_SHOWN ? [`            and ${agents.length - AGENTS_SHOWN} more: guildhall agents list`] : []),
        `  Store     ${store}`,
        `  Channels  ${channels.length === 0 ? "none yet" : channels.map(channelName).join(", ")}`,
        "  Try       guildhall chat · guildhall chat -m hello · Ctrl-C to stop",
        "",
      ].join("\n"),
    );
  }
  const signal = await asked;
  say(`${signal}: stopping`);
  await daemon.stop();
  // A database that does not answer may hold connections open beyond the time we have.
  process.exit(0);
}

function agentLine(agent: {
  readonly id: string;
  readonly model: string;
  readonly scripted: boolean;
  readonly problem: string | null;
}): string {
  const note = agent.problem ?? (agent.scripted ? "answers are scripted; name a model in guildhall.yaml" : null);
  return `${agent.id} · ${agent.model}${note === null ? "" : ` (${note})`}`;
}
