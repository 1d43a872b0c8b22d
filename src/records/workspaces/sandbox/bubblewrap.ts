import { mkdtemp, rm } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NewId } from "../../../kernel/ids.ts";
import { bubblewrapArgs, insideArgs, type OwnFiles } from "./bubblewrap-args.ts";
import { controlGroup } from "./control-groups.ts";
import { type GuardRules, guardedProxy, PUBLIC_ONLY } from "./guarded-proxy.ts";
import { inheritedHandles } from "./inherited-handles.ts";
import { KeptOutput } from "./kept-output.ts";
import { lookAtSystem, type SandboxSystem, SYSTEM_PATH } from "./probe.ts";
import { Program, type Started } from "./program.ts";
import { SANDBOX_LIMITS, type SandboxLimits, type SandboxPlan } from "./sandbox.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { seccompFilter } from "./seccomp.ts";

export interface BubblewrapOptions {
  readonly newId: NewId;
  /** Node, for the forwarder inside. */
  readonly node: string;
  readonly limits?: SandboxLimits;
  readonly bubblewrap?: string;
  readonly guard?: GuardRules;
}

/** Whether bubblewrap works here, seen by running it with the options that are used; or why not. */
export type SandboxState =
  | { readonly works: true; readonly isRoot: boolean; readonly boundsProcesses: boolean }
  | { readonly works: false; readonly why: string };

/** How a command is started, and what is known afterwards of the hosts it asked; null: nothing. */
export type Sandboxed = Started & { hosts(): readonly string[] | null };

const PROBE_MS = 10_000;
const NOT_HERE = "sandboxes need Linux";
const TOO_OLD = "as the administrator it needs a bubblewrap that knows --disable-userns (0.8 or later)";
/** Puts itself into groups, then becomes the rest of its arguments. */
const INTO_GROUPS = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift; exec "$@"';

/** Builds sandboxes with bubblewrap, where it works. */
export class Bubblewrap {
  readonly #options: BubblewrapOptions;
  readonly inherited = inheritedHandles();
  #system: Promise<SandboxSystem> | undefined;
  #folder: Promise<string> | undefined;

  constructor(options: BubblewrapOptions) {
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

  get limits(): SandboxLimits {
    return this.#options.limits ?? SANDBOX_LIMITS;
  }

  /** `undo`: what is to be put away when the command is over. */
  async sandboxed(plan: SandboxPlan, command: string, undo: AsyncDisposableStack): Promise<Sandboxed> {
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
    const group = await controlGroup(system.groups, name, this.limits);
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
    const args = bubblewrapArgs(plan, system, { etc: folder, guard }, this.limits);
    // By a pipe: what stands on a command line can be read by everybody on this machine.
    const pipes = [args.map((arg) => `${arg}\0`).join(""), ...(filter ? [filter] : [])];
    const bubblewrap = [
      this.#bubblewrap,
      ...["--args", "3", ...(filter ? ["--seccomp", "4"] : []), "--info-fd", String(pipes.length + 3), "--"],
      ...insideArgs(command, system.shell, system.hasPrlimit, guard, plan.shared, this.limits),
    ];
    const wrapped = ["-c", INTO_GROUPS, "sh", ...groups, "--", ...bubblewrap];
    return { file: "/bin/sh", args: wrapped, env: { PATH: SYSTEM_PATH }, pipes, tells: true, inherited: this.inherited };
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
    const program = new Program(this.#started(system, plan, "true", folder, null, []), this.limits, new KeptOutput(4_096, 4_096));
    const timer = setTimeout(() => program.end("timeout"), PROBE_MS);
    const { code } = await program.over.finally(() => clearTimeout(timer));
    await rm(workspace, { recursive: true, force: true });
    if (code !== 0) throw new Error(`bubblewrap does not work on this machine (${program.output.text.trim() || `it ended with ${code}`})`);
    return system;
  }

  async close(): Promise<void> {
    if (this.#folder) await rm(await this.#folder, { recursive: true, force: true });
  }

  #ownFolder(): Promise<string> {
    this.#folder ??= scratchFolder();
    return this.#folder;
  }
}

function forwarder(): string {
  return fileURLToPath(new URL(`./forward-worker${extname(import.meta.url)}`, import.meta.url));
}
