import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiClient } from "../client/api-client.ts";
import { PoolsClient } from "../client/pools.ts";
import { RunsClient } from "../client/runs.ts";
import type { Blame, Entry } from "../contract/pools.ts";
import { DEMO_CONFIG, DEMO_POOL, DEMO_STEPS, type DemoStep, demoMessage } from "./demo-plan.ts";
import { beginLine, callLine, endLine, readersLine, type StepEnd, versionsTable } from "./demo-view.ts";
import { table } from "./spans.ts";
import { type GlobalOptions, paint, print, say } from "./terminal.ts";

interface DemoOptions extends GlobalOptions {
  readonly keep?: boolean;
}

/** Where nobody says how wide a line may be. */
const COLUMNS = 80;
const INTERRUPTED = 130;
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** A house of its own, which is gone afterwards unless it is to be kept: also when it is interrupted, once its daemon has ended. */
export async function demo(options: DemoOptions): Promise<number> {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  for (const name of ENDING) process.on(name, interrupt);
  const home = mkdtempSync(join(tmpdir(), "guildhall-demo-"));
  try {
    writeFileSync(join(home, "guildhall.yaml"), DEMO_CONFIG, { mode: 0o600 });
    return await inHouse(home, options, interrupted.signal);
  } finally {
    if (!options.keep) rmSync(home, { recursive: true, force: true });
    for (const name of ENDING) process.removeListener(name, interrupt);
  }
}

async function inHouse(home: string, options: DemoOptions, interrupted: AbortSignal): Promise<number> {
  const { startDaemon } = await import("../daemon/daemon.ts");
  if (interrupted.aborted) return INTERRUPTED;
  const daemon = await startDaemon({ home, host: "127.0.0.1", port: 0, logLevel: "error" });
  try {
    const shown = new Demo(new ApiClient(daemon.url, daemon.operatorToken), options, home, interrupted).run();
    return await Promise.race([shown, aborted(interrupted)]);
  } finally {
    await daemon.stop();
  }
}

function aborted(signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(INTERRUPTED);
    else signal.addEventListener("abort", () => resolve(INTERRUPTED), { once: true });
  });
}

class Demo {
  readonly #client: ApiClient;
  readonly #pools: PoolsClient;
  readonly #options: DemoOptions;
  readonly #home: string;
  readonly #interrupted: AbortSignal;
  readonly #paint = paint(process.stdout);

  constructor(client: ApiClient, options: DemoOptions, home: string, interrupted: AbortSignal) {
    this.#client = client;
    this.#pools = new PoolsClient(client);
    this.#options = options;
    this.#home = home;
    this.#interrupted = interrupted;
  }

  async run(): Promise<number> {
    const began = performance.now();
    const { bold, dim } = this.#paint;
    this.#show(`\n${bold("Three agents, one shared memory.")}\nNo key, no network: every answer is scripted (offline/demo).\n`);
    const ends = await this.#all();
    const order = ends.map(({ run }) => run);
    // In the order of the plan, whoever was quicker of those that ran side by side.
    const entries = (await this.#versions()).sort((a, b) => order.indexOf(a.author.run ?? "") - order.indexOf(b.author.run ?? ""));
    const blames = new Map<string, Blame>();
    for (const { key, version } of entries) blames.set(`${key}@${version}`, await this.#pools.blame(DEMO_POOL, key, version));
    const failed = ends.some(({ status, error }) => status !== "completed" || error !== null);
    if (this.#options.json) {
      const steps = ends.map(({ step, ...end }) => ({ ...step, ...end }));
      const home = this.#options.keep ? { home: this.#home } : {};
      print(JSON.stringify({ ok: !failed, steps, entries, blame: Object.fromEntries(blames), ...home }));
      return failed ? 1 : 0;
    }
    this.#show(`\n${bold("Who wrote what, and from what")}\n${versionsTable(entries, blames, process.stdout.columns || COLUMNS)}\n`);
    const first = entries[0];
    const blame = first && blames.get(`${first.key}@${first.version}`);
    if (first && blame) this.#show(readersLine(first, blame));
    this.#show(
      dim(
        `\n  ${ends.length} turns in ${((performance.now() - began) / 1000).toFixed(1)} s, all of it real: rows in a database, shown through the API.`,
      ),
    );
    this.#show(this.#next());
    return failed ? 1 : 0;
  }

  /** Whatever waits for nothing any more runs, side by side. After a failure nothing new begins. */
  async #all(): Promise<StepEnd[]> {
    const ends = new Map<string, StepEnd>();
    const running = new Map<string, Promise<void>>();
    const failed = (): boolean => [...ends.values()].some(({ error }) => error !== null);
    for (;;) {
      const ready = DEMO_STEPS.filter(({ id, needs }) => !ends.has(id) && !running.has(id) && needs.every((need) => ends.has(need)));
      if (!failed())
        for (const step of ready)
          running.set(
            step.id,
            this.#one(step).then((end) => {
              ends.set(step.id, end);
              running.delete(step.id);
            }),
          );
      if (running.size === 0) return DEMO_STEPS.flatMap(({ id }) => ends.get(id) ?? []);
      await Promise.race(running.values());
    }
  }

  async #one(step: DemoStep): Promise<StepEnd> {
    this.#show(beginLine(step, this.#paint));
    const message = { id: step.id, platform: "demo", chat: step.id, peer: step.id, chat_type: "dm" as const, agent: step.agent };
    const { runId } = await this.#client.send({ ...message, text: demoMessage(step) });
    const args = new Map<number, string>();
    for await (const progress of this.#client.follow(runId)) {
      if (progress.kind !== "done") {
        const line = callLine(step, progress, args, this.#paint);
        if (line !== undefined) this.#show(line);
        continue;
      }
      const end = await this.#ended(step, progress.run.id);
      this.#show(endLine(end, this.#paint));
      return end;
    }
    throw new Error("the stream of a run ended without its end");
  }

  /** From the journal of the run and from the pool, not from what the model says about itself. */
  async #ended(step: DemoStep, runId: string): Promise<StepEnd> {
    const { run, steps } = await new RunsClient(this.#client).steps(runId);
    const answers = steps.flatMap((each) => (each.kind === "response" ? [each] : []));
    const tokens = answers.reduce((sum, { usage }) => sum + (usage ? usage.inputTokens + usage.outputTokens : 0), 0);
    const costUsd = answers.reduce((sum, { cost }) => sum + (cost ?? 0), 0) / 1e6;
    const written = (await this.#versions()).filter(({ author }) => author.run === runId);
    const missing = step.writes.filter((key) => !written.some((entry) => entry.key === key));
    const problem = missing.length === 0 ? null : `did not write ${missing.join(", ")}`;
    return {
      step,
      run: runId,
      status: run.status,
      ms: (run.endedAt ?? run.createdAt) - run.createdAt,
      tokens,
      costUsd,
      wrote: written.map(({ key, version }) => `${key}@${version}`),
      error: run.error?.message ?? problem,
    };
  }

  async #versions(): Promise<Entry[]> {
    const { entries: heads } = await this.#pools.entries(DEMO_POOL);
    const histories = await Promise.all(heads.map(({ key }) => this.#pools.history(DEMO_POOL, key)));
    return histories.flatMap(({ entries }) => entries);
  }

  #show(text: string): void {
    if (this.#interrupted.aborted) return;
    if (!this.#options.json) print(text);
    else if (text.trim() !== "") say(text);
  }

  #next(): string {
    const { bold } = this.#paint;
    const at = `--home ${this.#home}`;
    const kept = [
      [`guildhall start ${at}`, "the same house, to look around in"],
      [`guildhall pool blame ${DEMO_POOL} draft ${at}`, "who wrote it, and from what"],
    ];
    const commands = [
      ["guildhall chat", "talk to an agent; with a key it is a real one"],
      ["guildhall start", "the daemon, with its API on http://127.0.0.1:4270"],
      ...(this.#options.keep ? kept : [["guildhall demo --keep", "the same, and the house stays to look around in"]]),
      ["guildhall --help", "everything else"],
    ];
    return `\n${bold("Try next")}\n${table(commands.map(([command = "", does = ""]) => [`  ${command}`, does]))}\n`;
  }
}
