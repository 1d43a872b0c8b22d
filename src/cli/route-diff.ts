import { basename } from "node:path";
import { ClientError } from "../client/client-error.ts";
import { RoutingClient } from "../client/routing.ts";
import type { RouteAddress } from "../contract/routing.ts";
import { connectRunning } from "./connect.ts";
import { table } from "./spans.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface DiffOptions extends GlobalOptions {
  readonly last: number;
}

/** Messages that one rule of the new config would take from one agent to another. */
interface Move {
  readonly from: string | null;
  readonly to: string | null;
  readonly tier: string;
  readonly binding: string | null;
  readonly line: number | null;
  /** Of the agent they would go to, by the new config. */
  readonly state: string | null;
  count: number;
  readonly examples: RouteAddress[];
}

const EXAMPLES = 3;

export async function diffRoutes({ config, ...options }: DiffOptions): Promise<number> {
  if (config === undefined) throw new ClientError("usage.wrong", "name the new config with --config FILE");
  const { routesToBe } = await import("../daemon/local-route.ts");
  const next = routesToBe({ ...options, config });
  const client = new RoutingClient(await connectRunning(options));
  const moves = new Map<string, Move>();
  let compared = 0;
  for await (const messages of client.recorded(options.last)) {
    compared += messages.length;
    for (const { agent, address } of messages) {
      const to = next.agentFor(address);
      if (to !== agent) note(moves, { from: agent, to, ...next.reasonFor(address) }, address);
    }
  }
  const found = [...moves.values()].sort((a, b) => b.count - a.count);
  const moved = found.reduce((sum, { count }) => sum + count, 0);
  const { broken } = next;
  for (const { agent, because } of broken)
    say(harmless(`In the new config the agent ${agent} is broken, and its messages are refused: ${because}`));
  print(
    options.json ? JSON.stringify({ config, compared, moved, moves: found, broken }) : inWords(found, moved, compared, basename(config)),
  );
  return 0;
}

function note(moves: Map<string, Move>, kind: Omit<Move, "count" | "examples">, address: RouteAddress): void {
  const key = JSON.stringify([kind.from, kind.to, kind.tier, kind.line, kind.binding]);
  const move = moves.get(key) ?? { ...kind, count: 0, examples: [] };
  moves.set(key, move);
  move.count++;
  if (move.examples.length < EXAMPLES) move.examples.push(address);
}

function inWords(moves: readonly Move[], moved: number, compared: number, file: string): string {
  if (moved === 0) return `none of ${compared} recorded messages would move`;
  const lines = moves.flatMap((move) => {
    const place = move.line === null ? `tier ${move.tier}` : `tier ${move.tier}, ${file}:${move.line} ${harmless(move.binding ?? "")}`;
    const state = move.state === null || move.state === "active" ? "" : ` (${move.state})`;
    const way = `${harmless(move.from ?? "refused")} → ${bold(harmless(move.to ?? "refused"))}${state}`;
    return [
      `${String(move.count).padStart(7)}  ${way}   ${place}`,
      table(move.examples.map((address) => ["        ", harmless(addressInWords(address))])),
    ];
  });
  return [`${moved} of ${compared} recorded messages would move`, ...lines].join("\n");
}

function addressInWords({ platform, account, guild, chat, topic, chatType, peer, roles }: RouteAddress): string {
  const parts = [
    `${platform} ${chat}`,
    ...(topic === null ? [] : [`topic ${topic}`]),
    ...(account === "default" ? [] : [`account ${account}`]),
    ...(guild === null ? [] : [`guild ${guild}`]),
    chatType,
    `from ${peer}`,
    ...(roles.length === 0 ? [] : [`roles ${roles.join(" ")}`]),
  ];
  return parts.join(", ");
}
