import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startDaemon } from "../../src/daemon/daemon.ts";
import type { Model } from "../../src/kernel/model.ts";
import { serve, whenTold } from "../child.ts";

export interface NodeTask {
  /** Where it says how it can be reached. */
  readonly home: string;
  readonly name: string;
  readonly store: string;
  /** What stands under `channels.telegram`. */
  readonly account: Readonly<Record<string, unknown>> | null;
  /** How often it is told that something begins, and that it has ended. */
  readonly windows: number;
}

export interface NodeResult {
  /** Of each window. */
  readonly cpuMs: readonly number[];
}

const model: Model = {
  name: "bench/instant",
  scripted: true,
  price: { input: 0, output: 0 },
  async *stream() {
    yield { kind: "text", text: "The answer is short." };
    yield { kind: "usage", usage: { inputTokens: 10, outputTokens: 5 } };
  },
};

/** One node, whose processor time is taken between every two words of the launcher. */
await serve<NodeTask, NodeResult>(async ({ home, name, store, account, windows }) => {
  const config = {
    model: "bench/instant",
    store,
    tools: { allow: [] },
    agents: { main: {} },
    ...(account && { channels: { telegram: { ...account, allow: ["*"] } } }),
  };
  writeFileSync(join(home, "guildhall.yaml"), JSON.stringify(config));
  const provider = { name: "bench", model: () => model, models: () => ["instant"] };
  const daemon = await startDaemon({ home, name, port: 0, logLevel: "error", providers: [provider] });
  try {
    const cpuMs: number[] = [];
    while (cpuMs.length < windows) {
      await whenTold();
      const before = process.cpuUsage();
      await whenTold();
      const { user, system } = process.cpuUsage(before);
      cpuMs.push((user + system) / 1_000);
    }
    return { cpuMs };
  } finally {
    await daemon.stop();
  }
});
