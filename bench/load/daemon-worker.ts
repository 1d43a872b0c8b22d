import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { Model } from "../../src/kernel/model.ts";
import { serve, whenTold } from "../child.ts";

export interface LoadedDaemonTask {
  readonly folder: string;
  /** What stands under `channels.telegram`. */
  readonly account: Readonly<Record<string, unknown>>;
  readonly agents: number;
  readonly chats: readonly string[];
}

export interface MemorySample {
  /** By the clock of the machine: another process says what was going on then. */
  readonly at: number;
  readonly mebibytes: number;
}

export interface LoadedDaemonResult {
  readonly memory: readonly MemorySample[];
  readonly cpuMs: number;
}

const SAMPLE_MS = 1_000;

const model: Model = {
  name: "bench/instant",
  scripted: true,
  price: { input: 0, output: 0 },
  async *stream({ messages }) {
    const last = messages.at(-1);
    yield { kind: "text", text: `re ${last?.role === "user" ? last.text : ""}` };
    yield { kind: "usage", usage: { inputTokens: 10, outputTokens: 5 } };
  },
};

/** A daemon with one bot and many agents, until it is told to stop. */
await serve<LoadedDaemonTask, LoadedDaemonResult>(async ({ folder, account, agents, chats }) => {
  const home = mkdtempSync(join(folder, "home-"));
  const names = Array.from({ length: agents }, (_, index) => `a${index}`);
  const config = {
    model: "bench/instant",
    agents: Object.fromEntries(names.map((name, index) => [name, index === 0 ? { default: true } : {}])),
    bindings: chats.map((chat, index) => ({ agent: names[index % agents], telegram: chat })),
    channels: { telegram: { ...account, allow: ["*"], receipts: "none", stream: false } },
  };
  writeFileSync(join(home, "guildhall.yaml"), JSON.stringify(config));
  const provider = { name: "bench", model: () => model, models: () => ["instant"] };
  const daemon = await startDaemon({ home, port: 0, logLevel: "error", providers: [provider] });
  const memory: MemorySample[] = [];
  const sampling = setInterval(() => memory.push({ at: Date.now(), mebibytes: process.memoryUsage.rss() / 1_048_576 }), SAMPLE_MS);
  try {
    const before = process.cpuUsage();
    await whenTold();
    const { user, system } = process.cpuUsage(before);
    return { memory, cpuMs: (user + system) / 1_000 };
  } finally {
    clearInterval(sampling);
    await daemon.stop();
    rmSync(home, { recursive: true, force: true });
  }
});
