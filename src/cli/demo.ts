import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiClient } from "../client/api-client.ts";
import { PoolsClient } from "../client/pools.ts";
import { WorkflowsClient } from "../client/workflows.ts";
import type { Blame, Entry } from "../contract/pools.ts";
import { isStepOver, type RunStepView, type WorkflowRun } from "../contract/workflows.ts";
import { DEMO_CONFIG, DEMO_INPUT, DEMO_NAME, DEMO_STEPS, DEMO_WORKFLOW } from "./demo-plan.ts";
import { beginLine, endLine, readersLine, versionsTable } from "./demo-view.ts";
import { table } from "./spans.ts";
import { type GlobalOptions, paint, print, say } from "./terminal.ts";
import { progressOn } from "./workflow-progress.ts";
import { relayInWords } from "./workflow-words.ts";

interface DemoOptions extends GlobalOptions {
  readonly keep?: boolean;
}

/** Where nobody says how wide a line may be. */
const COLUMNS = 80;
const INTERRUPTED = 130;
const SHORT_ID = 14;
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** A house of its own, which is gone afterwards unless it is to be kept: also when it is interrupted, once its daemon has ended. */
export async function demo(options: DemoOptions): Promise<number> {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  for (const name of ENDING) process.on(name, interrupt);
  const home = mkdtempSync(join(tmpdir(), "guildhall-demo-"));
  try {
    writeFileSync(join(home, "guildhall.yaml"), DEMO_CONFIG, { mode: 0o600 });
    mkdirSync(join(home, "workflows"), { mode: 0o700 });
    writeFileSync(join(home, "workflows", `${DEMO_NAME}.yaml`), DEMO_WORKFLOW, { mode: 0o600 });
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
  readonly #workflows: WorkflowsClient;
  readonly #pools: PoolsClient;
  readonly #options: DemoOptions;
  readonly #home: string;
  readonly #interrupted: AbortSignal;
  readonly #paint = paint(process.stdout);
  readonly #told = new Set<string>();

  constructor(client: ApiClient, options: DemoOptions, home: string, interrupted: AbortSignal) {
    this.#workflows = new WorkflowsClient(client);
    this.#pools = new PoolsClient(client);
    this.#options = options;
    this.#home = home;
    this.#interrupted = interrupted;
  }

  async run(): Promise<number> {
    const { bold, dim } = this.#paint;
    this.#show(
      `\n${bold("Three agents, one workflow, one shared memory.")}\nNo key, no network: every answer is scripted (offline/demo).\n`,
    );
    const run = await this.#watched(await this.#workflows.start({ workflow: DEMO_NAME, input: DEMO_INPUT }));
    const pool = run.pool ?? "";
    const entries = await this.#versions(run);
    const blames = new Map<string, Blame>();
    for (const { key, version } of entries) blames.set(`${key}@${version}`, await this.#pools.blame(pool, key, version));
    const exit = run.status === "completed" ? 0 : 1;
    if (this.#options.json) {
      const steps = inOrder(run).map((step) => ({ ...step, wrote: written(step, entries) }));
      const home = this.#options.keep ? { home: this.#home } : {};
      print(JSON.stringify({ ok: exit === 0, ...run, steps, entries, blame: Object.fromEntries(blames), ...home }));
      return exit;
    }
    this.#show(`\n${bold("Who wrote what, and from what")}\n${versionsTable(entries, blames, process.stdout.columns || COLUMNS)}\n`);
    const first = entries[0];
    const blame = first && blames.get(`${first.key}@${first.version}`);
    if (first && blame) this.#show(readersLine(first, blame));
    if (run.relay) this.#show(dim(`\n  ${relayInWords(run.relay).replace("; ", ";\n  ")}`));
    const seconds = (((run.endedAt ?? run.createdAt) - run.createdAt) / 1000).toFixed(1);
    this.#show(dim(`\n  ${run.steps.length} steps in ${seconds} s, all of it real: rows in a database, shown through the API.`));
    this.#show(this.#next(run));
    return exit;
  }

  /** A tree that changes in its place where somebody looks, else lines. */
  async #watched(id: string): Promise<WorkflowRun> {
    const drawn = process.stdout.isTTY === true && !this.#options.json ? progressOn(process.stdout) : null;
    let last: WorkflowRun | undefined;
    try {
      for await (const run of this.#workflows.follow(id, this.#interrupted)) {
        last = run;
        drawn?.see(run);
        if (drawn === null) await this.#tell(run);
      }
    } finally {
      drawn?.end();
    }
    return last ?? this.#workflows.read(id);
  }

  async #tell(run: WorkflowRun): Promise<void> {
    for (const step of inOrder(run)) {
      const planned = DEMO_STEPS.find(({ id }) => id === step.id);
      const begun = step.status === "running" || step.status === "completed" || step.status === "failed";
      if (begun && planned) this.#once(`${step.id} begins`, beginLine(planned, this.#paint));
      if (!isStepOver(step.status) || this.#told.has(`${step.id} ends`)) continue;
      this.#once(`${step.id} ends`, endLine(step, written(step, await this.#versions(run)), this.#paint));
    }
  }

  #once(what: string, line: string): void {
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.#show(line);
  }

  /** In the order of the plan, whoever was quicker of those that ran side by side. */
  async #versions(run: WorkflowRun): Promise<Entry[]> {
    const pool = run.pool ?? "";
    const { entries: heads } = await this.#pools.entries(pool);
    const histories = await Promise.all(heads.map(({ key }) => this.#pools.history(pool, key)));
    const order = inOrder(run).map((step) => step.run);
    return histories.flatMap(({ entries }) => entries).sort((a, b) => order.indexOf(a.author.run) - order.indexOf(b.author.run));
  }

  #show(text: string): void {
    if (this.#interrupted.aborted) return;
    if (!this.#options.json) print(text);
    else if (text.trim() !== "") say(text);
  }

  #next(run: WorkflowRun): string {
    const { bold } = this.#paint;
    const kept = [
      [`guildhall workflow show ${run.id.slice(0, SHORT_ID)}`, "this run again"],
      [`guildhall workflow run ${DEMO_NAME} --input shop=bakery`, "another one"],
      ["guildhall start", "to look around in it"],
    ];
    const commands = [
      ...(this.#options.keep ? kept : [["guildhall demo --keep", "the same, and the house stays to look around in"]]),
      ["guildhall init", "a house of your own"],
      ["guildhall chat", "talk to an agent"],
      ["guildhall --help", "everything else"],
    ];
    // A path is as long as it is: it has a line of its own.
    const home = this.#options.keep ? `  export GUILDHALL_HOME=${this.#home}\n` : "";
    return `\n${bold("Try next")}\n${home}${table(commands.map(([command = "", does = ""]) => [`  ${command}`, does]))}\n`;
  }
}

function inOrder({ steps }: WorkflowRun): RunStepView[] {
  return DEMO_STEPS.flatMap(({ id }) => steps.find((step) => step.id === id) ?? []);
}

function written(step: RunStepView, entries: readonly Entry[]): string[] {
  return entries.filter(({ author }) => step.run !== null && author.run === step.run).map(({ key, version }) => `${key}@${version}`);
}
