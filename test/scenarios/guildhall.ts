import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { LedgerEvent } from "../../src/contract/events.ts";
import type { Admission, NewMessage, Run } from "../../src/contract/wire.ts";
import { LAUNCHER } from "../launcher.ts";
import { addTables } from "../stores.ts";

const CRASHING = new URL("./crashing-daemon.ts", import.meta.url).pathname;
const START_MS = 20_000;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A home in a folder of its own, and everything that runs on it. `remove` leaves no process and no file behind. */
export class Home {
  readonly path = mkdtempSync(join(tmpdir(), "guildhall-scenario-"));
  /** Of the node whose home it is. */
  readonly name = basename(this.path);
  readonly #children: ChildProcess[] = [];

  readonly #launcher: string;

  constructor(config?: string, launcher = LAUNCHER) {
    this.#launcher = launcher;
    if (config !== undefined) writeFileSync(join(this.path, "guildhall.yaml"), config);
  }

  /** `guildhall ARGS… --home HOME` to its end. */
  async run(args: readonly string[], options: SpawnOptions & { node?: string; input?: string } = {}): Promise<Ended> {
    const { node = process.execPath, input, ...spawning } = options;
    const child = this.#spawn(node, [this.#launcher, ...args, "--home", this.path], spawning);
    child.stdin?.end(input ?? "");
    return ended(child);
  }

  /** `guildhall start`, once it says that it is ready. Its tables are there already, unless it is to show how it makes them. */
  start(options: { node?: string; flags?: readonly string[]; args?: readonly string[]; bare?: boolean } = {}): Promise<RunningDaemon> {
    if (!options.bare) addTables(this.path);
    return this.#started(
      this.#spawn(options.node ?? process.execPath, [
        ...(options.flags ?? []),
        this.#launcher,
        "start",
        "--port",
        "0",
        "--json",
        "--home",
        this.path,
        ...(options.args ?? []),
      ]),
    );
  }

  /** The same daemon, which kills itself at the named crash point. */
  startCrashing(point: string): Promise<RunningDaemon> {
    addTables(this.path);
    return this.#started(this.#spawn(process.execPath, [CRASHING, this.path, point]));
  }

  async remove(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
    }
    rmSync(this.path, { recursive: true, force: true });
  }

  #spawn(command: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess {
    const { GUILDHALL_HOME: _home, GUILDHALL_STORE: _store, ...environment } = process.env;
    // All are on one machine, and several may be on one database.
    const named = { ...environment, GUILDHALL_NODE_NAME: this.name };
    const child = spawn(command, args, { stdio: "pipe", env: named, ...options });
    this.#children.push(child);
    return child;
  }

  async #started(child: ChildProcess): Promise<RunningDaemon> {
    const end = ended(child);
    const line = new Promise<string>((resolve) => createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", resolve));
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error("the daemon did not start in time")), START_MS).unref(),
    );
    const first = await Promise.race([line, late, end.then((result) => Promise.reject(new Error(`the daemon ended: ${result.stderr}`)))]);
    const { url } = JSON.parse(first) as { url?: string };
    if (url === undefined) throw new Error(`the daemon did not start: ${first}`);
    return new RunningDaemon(child, end, url, readFileSync(join(this.path, "operator.token"), "utf8").trim());
  }
}

async function ended(child: ChildProcess): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (data) => {
    stdout += data;
  });
  child.stderr?.on("data", (data) => {
    stderr += data;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve(status));
  });
  return { code, stdout, stderr };
}

export class RunningDaemon {
  readonly url: string;
  readonly token: string;
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;

  constructor(child: ChildProcess, end: Promise<Ended>, url: string, token: string) {
    this.#child = child;
    this.ended = end;
    this.url = url;
    this.token = token;
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.#child.kill(signal);
    return this.ended;
  }

  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, { ...init, headers: { authorization: `Bearer ${this.token}`, ...init.headers } });
  }

  async send(message: Partial<NewMessage> & { id: string }): Promise<Admission> {
    const whole: NewMessage = { platform: "test", chat: "c", peer: "p", chat_type: "dm", text: "hello", ...message };
    const response = await this.fetch("/api/messages", { method: "POST", body: JSON.stringify(whole) });
    if (response.status !== 202) throw new Error(`${response.status}: ${await response.text()}`);
    return (await response.json()) as Admission;
  }

  async run(id: string): Promise<Run> {
    return (await (await this.fetch(`/api/runs/${id}`)).json()) as Run;
  }

  /** The run when it is over. */
  async finished(id: string): Promise<Run> {
    await (await this.fetch(`/api/runs/${id}/live`)).text();
    return this.run(id);
  }

  /** Everything the ledger says about a run up to now, and from then on until it has said `last`. */
  async eventsUntil(runId: string, last: LedgerEvent["type"]): Promise<LedgerEvent[]> {
    // An event of its own marks what now is: everything about the run that was committed stands before it.
    const posted = await this.fetch("/api/mail", { method: "POST", body: JSON.stringify({ to: "nobody", type: "mark", content: "" }) });
    const { id: mark } = (await posted.json()) as { id: string };
    const stop = new AbortController();
    const response = await this.fetch("/api/events?after=0", { signal: stop.signal });
    const events: LedgerEvent[] = [];
    let marked = false;
    for await (const { data } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
      const event = JSON.parse(data) as LedgerEvent;
      marked ||= JSON.stringify(event).includes(mark);
      if (event.subject[1] === runId) events.push(event);
      if (marked && events.some(({ type }) => type === last)) break;
    }
    stop.abort();
    return events;
  }
}
