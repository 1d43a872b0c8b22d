import { mkdtemp, rm } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AgentConfig } from "../../../contract/config.ts";
import type { Secret } from "../../../contract/secret.ts";
import { Failure } from "../../../kernel/failure.ts";
import type { NewId } from "../../../kernel/ids.ts";
import type { Place } from "../../../kernel/place-folder.ts";
import type { Surroundings } from "../../../settings/shared-paths.ts";
import type { WorkspaceOwner, Workspaces } from "../workspaces.ts";
import { bubblewrapArgs, insideArgs, type OwnFiles, sandboxEnvironment } from "./bubblewrap-args.ts";
import { controlGroup } from "./control-groups.ts";
import { type GuardRules, guardedProxy, PUBLIC_ONLY } from "./guarded-proxy.ts";
import { inheritedHandles } from "./inherited-handles.ts";
import { KeptOutput } from "./kept-output.ts";
import { lookAtSystem, type SandboxSystem, SYSTEM_PATH, shellOf } from "./probe.ts";
import { Program, type Started } from "./program.ts";
import {
  type Network,
  type RunEnd,
  type RunRequest,
  SANDBOX_LIMITS,
  type SandboxKind,
  type SandboxLimits,
  type SandboxPlan,
} from "./sandbox.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { seccompFilter } from "./seccomp.ts";

export interface SandboxesOptions {
  readonly newId: NewId;
  /** Node, for the forwarder inside. */
  readonly node: string;
  readonly limits?: SandboxLimits;
  readonly bubblewrap?: string;
  readonly guard?: GuardRules;
}

/** What of an agent decides about its programs. */
export interface SandboxOwner extends WorkspaceOwner {
  readonly env: Readonly<Record<string, Secret>>;
  readonly sandbox: NonNullable<AgentConfig["sandbox"]>;
}

/** Whether bubblewrap works here, seen by running it with the options that are used; or why not. */
export type SandboxState =
  | { readonly works: true; readonly isRoot: boolean; readonly boundsProcesses: boolean }
  | { readonly works: false; readonly why: string };

/** A started command. `over` never rejects once it has begun. */
export interface Running {
  readonly output: KeptOutput;
  readonly over: Promise<RunEnd>;
  end(because: NonNullable<RunEnd["ended"]>): void;
  endAtOnce(): void;
}

const KEPT = 1024 * 1024;
const PROBE_MS = 10_000;
const NOT_HERE = "sandboxes need Linux";
const TOO_OLD = "as the administrator it needs a bubblewrap that knows --disable-userns (0.8 or later)";
/** Puts itself into groups, then becomes the rest of its arguments. */
const INTO_GROUPS = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"';

/** Runs programs of agents, each command in a sandbox of its own. */
export class Sandboxes {
  readonly #workspaces: Workspaces;
  readonly #options: SandboxesOptions;
  readonly #running = new Set<Program>();
  readonly #inherited = inheritedHandles();
  #system: Promise<SandboxSystem> | undefined;
  #folder: Promise<string> | undefined;
  #isClosed = false;

  constructor(workspaces: Workspaces, options: SandboxesOptions) {
    this.#workspaces = workspaces;
    this.#options = options;
  }

  async state(): Promise<SandboxState> {
    try {
      const { isRoot, groups } = await this.#tried();
      return { works: true, isRoot, boundsProcesses: !isRoot || groups.pids !== null };
    } catch (error) {
      return { works: false, why: (error as Error).message };
    }
  }

  /** Never less than was asked for: where bubblewrap is wanted and does not work, it is refused. */
  async plan(owner: SandboxOwner, place: Place | null, around: Pick<Surroundings, "configFile">, network: Network): Promise<SandboxPlan> {
    const kind: SandboxKind = owner.sandbox.kind === "none" ? "none" : "bubblewrap";
    if (kind === "bubblewrap") {
      const state = await this.state();
      if (!state.works) throw new Failure("sandbox.unavailable", `programs cannot be run in a sandbox here: ${state.why}`);
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
    try {
      const started = plan.kind === "none" ? this.#unsandboxed(plan, command) : await this.#sandboxed(plan, command, undo);
      if (this.#isClosed) throw new Failure("daemon.stopping", "no more programs are started");
      const { hosts, ...how } = started;
      const program = new Program(how, this.#limits, kept, onOutput);
      this.#running.add(program);
      const over = program.over.finally(async () => {
        this.#running.delete(program);
        await undo.disposeAsync();
      });
      over.catch(() => {});
      return {
        output: kept,
        over: over.then((end) => ({ ...end, output: kept.text, cut: kept.cut, hosts: hosts() })),
        end: (because) => program.end(because),
        endAtOnce: () => program.endAtOnce(),
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
    if (this.#folder) await rm(await this.#folder, { recursive: true, force: true });
  }

  get #limits(): SandboxLimits {
    return this.#options.limits ?? SANDBOX_LIMITS;
  }

  async #sandboxed(
    plan: SandboxPlan,
    command: string,
    undo: AsyncDisposableStack,
  ): Promise<Started & { hosts(): readonly string[] | null }> {
    const system = await this.#tried();
    const folder = await this.#ownFolder();
    const name = this.#options.newId();
    let guard: OwnFiles["guard"] = null;
    let hosts = (): readonly string[] | null => (plan.network === "none" ? [] : null);
    if (plan.network === "guarded") {
      const socket = join(folder, `${name}.sock`);
      const proxy = await guardedProxy(socket, this.#options.guard ?? PUBLIC_ONLY);
      undo.defer(() => proxy.close());
      hosts = () => [...proxy.hosts];
      guard = { socket, node: this.#options.node, script: forwarder() };
    }
    const group = await controlGroup(system.groups, name, this.#limits);
    if (group) undo.defer(() => group.remove());
    return { ...this.#started(system, plan, command, folder, guard, group?.procs ?? []), hosts };
  }

  #started(
    system: SandboxSystem,
    plan: SandboxPlan,
    command: string,
    folder: string,
    guard: OwnFiles["guard"],
    groups: readonly string[],
  ): Started {
    const filter = seccompFilter(process.arch);
    const args = bubblewrapArgs(plan, system, { etc: folder, guard }, this.#limits);
    // By a pipe: what stands on a command line can be read by everybody on this machine.
    const pipes = [args.map((arg) => `${arg}\0`).join(""), ...(filter ? [filter] : [])];
    const bubblewrap = [
      this.#bubblewrap,
      ...["--args", "3", ...(filter ? ["--seccomp", "4"] : []), "--info-fd", String(pipes.length + 3), "--"],
      ...insideArgs(command, system.shell, system.hasPrlimit, guard, this.#limits),
    ];
    const wrapped = ["-c", INTO_GROUPS, "sh", ...groups, "--", ...bubblewrap];
    return { file: "/bin/sh", args: wrapped, env: { PATH: SYSTEM_PATH }, pipes, tells: true, inherited: this.#inherited };
  }

  #unsandboxed(plan: SandboxPlan, command: string): Started & { hosts(): null } {
    const args = ["-c", `exec 2>&1; ${command}`];
    const env = sandboxEnvironment(plan);
    return { file: shellOf(), args, cwd: plan.workspace, env, pipes: [], tells: false, inherited: this.#inherited, hosts: () => null };
  }

  get #bubblewrap(): string {
    return this.#options.bubblewrap ?? "bwrap";
  }

  /** Tried once; where it failed, again the next time, since somebody may have installed it. */
  #tried(): Promise<SandboxSystem> {
    const trying = this.#system ?? this.#try();
    this.#system = trying;
    trying.catch(() => {
      if (this.#system === trying) this.#system = undefined;
    });
    return trying;
  }

  async #try(): Promise<SandboxSystem> {
    if (process.platform !== "linux") throw new Error(NOT_HERE);
    const system = await lookAtSystem(this.#bubblewrap);
    if (system.isRoot && !system.disablesUserns) throw new Error(TOO_OLD);
    const folder = await this.#ownFolder();
    const workspace = await mkdtemp(join(folder, "try-"));
    const plan: SandboxPlan = { kind: "bubblewrap", network: "none", workspace, shared: [], env: {} };
    const program = new Program(this.#started(system, plan, "true", folder, null, []), this.#limits, new KeptOutput(4_096, 4_096));
    const timer = setTimeout(() => program.end("timeout"), PROBE_MS);
    const { code } = await program.over.finally(() => clearTimeout(timer));
    await rm(workspace, { recursive: true, force: true });
    if (code !== 0) throw new Error(`bubblewrap does not work on this machine (${program.output.text.trim() || `it ended with ${code}`})`);
    return system;
  }

  #ownFolder(): Promise<string> {
    this.#folder ??= scratchFolder();
    return this.#folder;
  }
}

function forwarder(): string {
  return fileURLToPath(new URL(`./forward-worker${extname(import.meta.url)}`, import.meta.url));
}
