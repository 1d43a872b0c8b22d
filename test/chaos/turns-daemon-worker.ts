import { z } from "zod";
import { defineTool, type Effect, type Tool } from "../../src/abilities/tools/tool.ts";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { Model, ModelMessage } from "../../src/kernel/model.ts";
import type { Asked, Told } from "./turns-witness.ts";

/** A whole daemon whose model thinks, and whose tools act, in another process. It dies as kill -9 would end it, at an exact line. */
export interface TurnsPlan {
  readonly home: string;
  readonly witness: string;
  /** The daemon's own when absent. */
  readonly leaseMs?: number;
  /** Of the node, where there are several. */
  readonly name?: string;
  /** `armed`: from the beginning; else when a line comes in. */
  readonly crash: { readonly point: string; readonly hit: number; readonly armed: boolean } | null;
}

const { home, witness, leaseMs, name, crash } = JSON.parse(process.argv[2] as string) as TurnsPlan;

async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await fetch(`${witness}${path}`, { method: "POST", body: JSON.stringify(body), ...(signal ? { signal } : {}) });
  return (await answer.json()) as T;
}

const model: Model = {
  name: "outside/model",
  scripted: true,
  async *stream(request, signal) {
    const { text, calls, usage } = await post<Told>("/answer", askedOf(request.messages), signal);
    yield { kind: "text", text };
    for (const call of calls) yield { kind: "call", call };
    yield { kind: "usage", usage: usage ?? { inputTokens: 1, outputTokens: 1 } };
  },
};

function askedOf(messages: readonly ModelMessage[]): Asked {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const message = messages[at];
  const after = messages.slice(at + 1);
  return {
    node: name ?? "",
    message: message?.role === "user" ? message.text : "",
    results: after.flatMap((each) =>
      each.role === "tool" ? [each.results.map(({ tool, text, failed }) => ({ tool, text, failed }))] : [],
    ),
  };
}

const act = (name: string, effect: Effect): Tool =>
  defineTool({
    name,
    description: "Does something outside.",
    parameters: z.strictObject({ number: z.string() }),
    effect,
    run: async ({ number }, { key }) => ({ output: await post("/effect", { tool: name, number, key }) }),
  });

let hits = 0;
let blow: { readonly point: string; readonly hit: number } | null = crash?.armed ? crash : null;
/** A line arms what was planned, or says where else it is to die. */
process.stdin.on("data", (line) => {
  hits = 0;
  blow = line.toString() === "now\n" ? crash : (JSON.parse(line.toString()) as { point: string; hit: number });
});
const daemon = await startDaemon({
  home,
  port: 0,
  logLevel: "error",
  ...(leaseMs === undefined ? {} : { leaseMs }),
  name,
  providers: [{ name: "outside", model: () => model, models: () => ["model"] }],
  tools: [act("look", "pure"), act("put", "keyed"), act("fire", "unsafe")],
  reached: (point) => {
    if (point === blow?.point && ++hits === blow.hit) process.kill(process.pid, "SIGKILL");
  },
});
process.stdout.write(`${JSON.stringify({ url: daemon.url, token: daemon.operatorToken })}\n`);
