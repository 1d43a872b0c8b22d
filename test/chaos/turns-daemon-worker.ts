import { z } from "zod";
import { defineTool, type Effect, type Tool } from "../../src/abilities/tools/tool.ts";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { Model, ModelMessage } from "../../src/kernel/model.ts";
import type { Asked, Told } from "./turns-witness.ts";

/** A whole daemon whose model thinks, and whose tools act, in another process. It dies as kill -9 would end it, at an exact line. */
export interface TurnsPlan {
  readonly home: string;
  readonly witness: string;
  readonly leaseMs: number;
  /** `armed`: from the beginning; else when a line comes in. */
  readonly crash: { readonly point: string; readonly hit: number; readonly armed: boolean } | null;
}

const { home, witness, leaseMs, crash } = JSON.parse(process.argv[2] as string) as TurnsPlan;

async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await fetch(`${witness}${path}`, { method: "POST", body: JSON.stringify(body) });
  return (await answer.json()) as T;
}

const model: Model = {
  name: "outside/model",
  scripted: true,
  async *stream(request) {
    const { text, calls } = await post<Told>("/answer", askedOf(request.messages));
    yield { kind: "text", text };
    for (const call of calls) yield { kind: "call", call };
    yield { kind: "usage", usage: { inputTokens: 1, outputTokens: 1 } };
  },
};

function askedOf(messages: readonly ModelMessage[]): Asked {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const message = messages[at];
  const after = messages.slice(at + 1);
  return {
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
let armed = crash?.armed ?? false;
process.stdin.once("data", () => {
  armed = true;
});
const daemon = await startDaemon({
  home,
  port: 0,
  logLevel: "error",
  leaseMs,
  providers: [{ name: "outside", model: () => model, models: () => ["model"] }],
  tools: [act("look", "pure"), act("put", "keyed"), act("fire", "unsafe")],
  reached: (point) => {
    if (armed && point === crash?.point && ++hits === crash.hit) process.kill(process.pid, "SIGKILL");
  },
});
process.stdout.write(`${JSON.stringify({ url: daemon.url, token: daemon.operatorToken })}\n`);
