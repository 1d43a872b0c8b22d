import type { NETWORKS } from "../../../contract/config.ts";

export type Network = (typeof NETWORKS)[number];
export type SandboxKind = "bubblewrap" | "none";

/** Everything that decides how programs of one agent run in one of its workspaces. Plain, so that it can be handed on and narrowed. */
export interface SandboxPlan {
  readonly kind: SandboxKind;
  readonly network: Network;
  /** The workspace's real place. */
  readonly workspace: string;
  readonly shared: readonly SharedMount[];
  /** Of the agent alone. */
  readonly env: Readonly<Record<string, string>>;
}

export interface SharedMount {
  readonly name: string;
  readonly path: string;
  /** Which folder it was when it was looked at: bubblewrap goes by the path, which may lead elsewhere by then. */
  readonly identity: string;
  readonly writable: boolean;
}

export interface SandboxLimits {
  /** Processes and threads of one command. */
  readonly processes: number;
  readonly memoryBytes: number;
  /** Of one file that is written. */
  readonly fileBytes: number;
  readonly tmpBytes: number;
  /** Once a command has said more than this it is ended. */
  readonly outputBytes: number;
}

const MiB = 1024 * 1024;
export const SANDBOX_LIMITS: SandboxLimits = {
  processes: 512,
  memoryBytes: 4096 * MiB,
  fileBytes: 2048 * MiB,
  tmpBytes: 512 * MiB,
  outputBytes: 64 * MiB,
};

export interface RunRequest {
  readonly command: string;
  /** Ends it, with all it has started. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  onOutput?(text: string): void;
}

export interface RunEnd {
  /** Null: it was ended by a signal. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Both streams, in their order; of very long output the beginning and the end. */
  readonly output: string;
  /** Characters that are missing in the middle. */
  readonly cut: number;
  /** Why we ended it; null: it ended by itself. */
  readonly ended: "stopped" | "timeout" | "output" | null;
  /** Hosts that were asked through the guard, or may have been: null where nobody counts. */
  readonly hosts: readonly string[] | null;
}
