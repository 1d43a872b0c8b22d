import { realpath } from "node:fs/promises";
import type { AgentConfig } from "../../../contract/config.ts";
import type { Secret } from "../../../contract/secret.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { Place } from "../../../kernel/place-folder.ts";
import type { Surroundings } from "../../../settings/shared-paths.ts";
import type { WorkspaceOwner, Workspaces } from "../workspaces.ts";
import { Bubblewrap, type BubblewrapOptions, type Sandboxed, type SandboxState } from "./bubblewrap.ts";
import { sandboxEnvironment } from "./bubblewrap-args.ts";
import { KeptOutput } from "./kept-output.ts";
import { shellOf } from "./probe.ts";
import { Program } from "./program.ts";
import type { Network, RunEnd, RunRequest, SandboxKind, SandboxPlan } from "./sandbox.ts";

/** What of an agent decides about its programs. */
export interface SandboxOwner extends WorkspaceOwner {
  readonly env: Readonly<Record<string, Secret>>;
  readonly sandbox: NonNullable<AgentConfig["sandbox"]>;
}

/** A started command. `over` never rejects once it has begun. */
export interface Running {
  readonly output: KeptOutput;
  readonly over: Promise<RunEnd>;
  end(because: NonNullable<RunEnd["ended"]>): void;
}

const KEPT = 1024 * 1024;

/** Runs programs of agents, each command in a sandbox of its own. */
export class Sandboxes {
  readonly #workspaces: Workspaces;
  readonly #bubblewrap: Bubblewrap;
  readonly #running = new Set<Program>();
  readonly #away = new Set<Promise<void>>();
  #isClosed = false;

  constructor(workspaces: Workspaces, options: BubblewrapOptions) {
    this.#workspaces = workspaces;
    this.#bubblewrap = new Bubblewrap(options);
  }

  state(): Promise<SandboxState> {
    return this.#bubblewrap.state();
  }

  /** Never less than was asked for: where bubblewrap is wanted and does not work, it is refused. */
  async plan(owner: SandboxOwner, place: Place | null, around: Pick<Surroundings, "configFile">, network: Network): Promise<SandboxPlan> {
    const kind: SandboxKind = owner.sandbox.kind === "none" ? "none" : "bubblewrap";
    if (kind === "bubblewrap") {
      const state = await this.state();
      if (!state.works) throw new Failure("sandbox.unavailable", `programs cannot be run in a sandbox here: ${state.why}`);
      await refuseShown("the home", this.#workspaces.home);
      if (around.configFile !== null) await refuseShown("the config file", around.configFile);
    }
    const { own, shared } = await this.#workspaces.places(owner, place, around, kind === "bubblewrap");
    const env = Object.fromEntries(Object.entries(owner.env).map(([name, secret]) => [name, secret.reveal()]));
    return { kind, network: kind === "none" ? "full" : network, workspace: own, shared, env };
  }

  async run(plan: SandboxPlan, request: RunRequest): Promise<RunEnd> {
    request.signal.throwIfAborted();
    const running = await this.start(plan, request.command, new KeptOutput(KEPT, KEPT), request.onOutput);
    const stop = (): void => running.end("stopped");
    const timer = setTimeout(() => running.end("timeout"), request.timeoutMs);
    request.signal.addEventListener("abort", stop, { once: true });
    if (request.signal.aborted) stop();
    try {
      return await running.over;
    } finally {
      clearTimeout(timer);
      request.signal.removeEventListener("abort", stop);
    }
  }

  /** Starts it and leaves it running; the caller sees to its end. */
  async start(plan: SandboxPlan, command: string, kept: KeptOutput, onOutput?: (text: string) => void): Promise<Running> {
    const undo = new AsyncDisposableStack();
    const refuseClosed = (): void => {
      if (this.#isClosed) throw new Failure("daemon.stopping", "no more programs are started");
    };
    try {
      refuseClosed();
      const started = plan.kind === "none" ? this.#unsandboxed(plan, command) : await this.#bubblewrap.sandboxed(plan, command, undo);
      refuseClosed();
      const { hosts, ...how } = started;
      const program = new Program(how, this.#bubblewrap.limits, kept, onOutput);
      this.#running.add(program);
      const over = program.over.finally(() => {
        this.#running.delete(program);
        // Nobody waits for what is put away: the turn goes on.
        const away = undo.disposeAsync().catch(() => {});
        this.#away.add(away);
        void away.then(() => this.#away.delete(away));
      });
      return {
        output: kept,
        over: over.then((end) => ({ ...end, output: kept.text, cut: kept.cut, hosts: hosts() })),
        end: (because) => program.end(because),
      };
    } catch (error) {
      await undo.disposeAsync();
      throw error;
    }
  }

  /** Ends everything that still runs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const left = [...this.#running];
    for (const program of left) program.end("stopped");
    await Promise.allSettled(left.map(({ over }) => over));
    await Promise.all(this.#away);
    await this.#bubblewrap.close();
  }

  #unsandboxed(plan: SandboxPlan, command: string): Sandboxed {
    const args = ["-c", `exec 2>&1; ${command}`];
    const env = sandboxEnvironment(plan);
    return {
      file: shellOf(),
      args,
      cwd: plan.workspace,
      env,
      pipes: [],
      tells: false,
      inherited: this.#bubblewrap.inherited,
      hosts: () => null,
    };
  }
}

/** Every sandbox sees the system's programs, with whatever else lies among them. */
async function refuseShown(what: string, path: string): Promise<void> {
  const real = await realpath(path).catch(() => path);
  if (!real.startsWith("/usr/")) return;
  throw new Failure("sandbox.unavailable", `${what} lies below /usr, all of which programs in a sandbox can read`, {
    hint: "Move it elsewhere, for example below /home, /srv or /var/lib.",
  });
}
