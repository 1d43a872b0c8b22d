import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../free-port.ts";
import type { DaemonPlan } from "./http-records.ts";

const START_MS = 30_000;

/** A process of ours that says one JSON after another, and what became of it. */
export class Talker<Said> {
  readonly #child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly errors: string }>;

  constructor(worker: string, plan: unknown, hear: (said: Said) => void) {
    const path = new URL(`./http-${worker}-worker.ts`, import.meta.url).pathname;
    const { GUILDHALL_HOME: _home, GUILDHALL_STORE: _store, ...environment } = process.env;
    this.#child = spawn(process.execPath, [path, JSON.stringify(plan)], { stdio: "pipe", env: environment });
    // A line to one that is just dying is lost, and so be it.
    this.#child.stdin?.on("error", () => {});
    let errors = "";
    this.#child.stderr?.on("data", (data) => {
      errors = (errors + data).slice(-4_000);
    });
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    lines.on("line", (line) => hear(JSON.parse(line) as Said));
    const heardAll = new Promise<void>((resolve) => lines.once("close", resolve));
    this.ended = new Promise((resolve) => {
      this.#child.once("close", async (code, signal) => {
        await heardAll;
        resolve({ code, signal, errors });
      });
    });
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}

/** A home with its port, on which one daemon lives after another. */
export class DaemonSeat {
  readonly home = mkdtempSync(join(tmpdir(), "guildhall-chaos-"));
  readonly #port: number;
  #talker: Talker<{ token: string }> | undefined;
  /** Which it reports when it starts. */
  token = "";
  crash: DaemonPlan["crash"];

  private constructor(port: number, store: string | undefined) {
    this.#port = port;
    if (store) writeFileSync(join(this.home, "guildhall.yaml"), `store: ${JSON.stringify(store)}\n`);
  }

  static async make(store: string | undefined): Promise<DaemonSeat> {
    return new DaemonSeat(await freePort(), store);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** True once it answers; false when it died before, as it may with a crash point. Anything else that ends it is an error. */
  async start(crash?: DaemonPlan["crash"]): Promise<boolean> {
    let isReady: () => void = () => {};
    const ready = new Promise<"ready">((resolve) => {
      isReady = () => resolve("ready");
    });
    this.crash = crash;
    const talker = new Talker<{ token: string }>("daemon", { home: this.home, port: this.#port, crash }, ({ token }) => {
      this.token = token;
      isReady();
    });
    this.#talker = talker;
    const late = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), START_MS).unref());
    const first = await Promise.race([ready, late, talker.ended]);
    if (first === "ready") return true;
    if (first === "late") throw new Error("a daemon did not start in time");
    if (first.signal !== "SIGKILL") throw new Error(`a daemon ended with ${first.code}: ${first.errors}`);
    return false;
  }

  /** When it has died of its crash point; false after so long. */
  async died(withinMs: number): Promise<boolean> {
    const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), withinMs));
    return Promise.race([late, this.#talker?.ended.then(() => true) ?? true]);
  }

  /** kill -9. Whatever else had ended it would be a bug. */
  async kill(): Promise<void> {
    await this.#talker?.kill();
    const end = await this.#talker?.ended;
    if (end && end.signal !== "SIGKILL") throw new Error(`a daemon had ended with ${end.code}: ${end.errors}`);
  }

  async remove(): Promise<void> {
    await this.#talker?.kill();
    rmSync(this.home, { recursive: true, force: true });
  }
}
