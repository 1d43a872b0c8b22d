import { pathToFileURL } from "node:url";
import { z } from "zod";
import type { Effect, Tool } from "../../src/abilities/tools/tool.ts";
import type { Daemon } from "../../src/daemon/daemon.ts";
import type { Model, ModelMessage } from "../../src/kernel/model.ts";
import type { Asked, Told } from "./turns-witness.ts";

/** A whole daemon from the source of any version, whose model thinks, and whose tools act, in another process. SIGTERM stops it in order. */
export interface UpgradePlan {
  /** The folder of the version. */
  readonly source: string;
  readonly home: string;
  readonly name: string;
  readonly witness: string;
  readonly leaseMs: number;
}

const { source, home, name, witness, leaseMs } = JSON.parse(process.argv[2] as string) as UpgradePlan;
const from = async <T>(path: string): Promise<T> => (await import(pathToFileURL(`${source}/src/${path}`).href)) as T;
const { startDaemon } = await from<typeof import("../../src/daemon/daemon.ts")>("daemon/daemon.ts");
const { defineTool } = await from<typeof import("../../src/abilities/tools/tool.ts")>("abilities/tools/tool.ts");

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
  const results = messages.slice(at + 1).flatMap((each) => (each.role === "tool" ? [each.results] : []));
  return {
    node: name,
    message: message?.role === "user" ? message.text : "",
    results: results.map((each) => each.map(({ tool, text, failed }) => ({ tool, text, failed }))),
  };
}

const act = (tool: string, effect: Effect): Tool =>
  defineTool({
    name: tool,
    description: "Does something outside.",
    parameters: z.strictObject({ number: z.string() }),
    effect,
    run: async ({ number }, { key }) => ({ output: await post("/effect", { tool, number, key }) }),
  });

const daemon: Daemon = await startDaemon({
  home,
  name,
  port: 0,
  logLevel: "warn",
  leaseMs,
  providers: [{ name: "outside", model: () => model, models: () => ["model"] }],
  tools: [act("look", "pure"), act("put", "keyed"), act("fire", "unsafe")],
});
process.on("SIGTERM", () => void daemon.stop().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ url: daemon.url, token: daemon.operatorToken, version: daemon.version })}\n`);
