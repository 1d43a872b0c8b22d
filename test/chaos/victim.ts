import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Acknowledgement, WorkerPlan } from "./store-worker.ts";

const WORKER = new URL("./store-worker.ts", import.meta.url).pathname;

export interface Limits {
  /** Largest file the victim may write, in KiB: a full disk. */
  readonly fileKib?: number;
  readonly openFiles?: number;
}

/** A process that works on the store until it is killed. What it says is heard here, outside, and stays true after its death. */
export class Victim {
  readonly #child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly errors: string }>;
  readonly ready: Promise<boolean>;

  constructor(plan: WorkerPlan, hear: (acknowledgement: Acknowledgement) => void, limits: Limits = {}) {
    const settings = [
      ...(limits.fileKib ? ["trap '' XFSZ", `ulimit -f ${limits.fileKib}`] : []),
      ...(limits.openFiles ? [`ulimit -n ${limits.openFiles}`] : []),
      'exec "$@"',
    ].join("; ");
    this.#child = spawn("bash", ["-c", settings, "victim", process.execPath, WORKER, JSON.stringify(plan)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let errors = "";
    this.#child.stderr?.on("data", (data) => {
      errors += data;
    });
    let becomeReady: (ready: boolean) => void = () => {};
    this.ready = new Promise((resolve) => {
      becomeReady = resolve;
    });
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    lines.on("line", (line) => {
      if (!line.endsWith("}")) return;
      const acknowledgement = JSON.parse(line) as Acknowledgement;
      if (acknowledgement.kind === "ready") becomeReady(true);
      hear(acknowledgement);
    });
    const heardAll = new Promise<void>((resolve) => lines.once("close", resolve));
    this.ended = new Promise((resolve) => {
      this.#child.once("close", async (code, signal) => {
        await heardAll;
        becomeReady(false);
        resolve({ code, signal, errors });
      });
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended;
  }
}
