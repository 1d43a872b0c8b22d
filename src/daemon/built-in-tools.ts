import { contextTools } from "../abilities/tools/context/context-tools.ts";
import { type CoordinationToolParts, coordinationTools } from "../abilities/tools/coordination/coordination-tools.ts";
import type { DelegationParts } from "../abilities/tools/delegation/delegation-parts.ts";
import { delegationTools } from "../abilities/tools/delegation/delegation-tools.ts";
import { fileTools } from "../abilities/tools/files/file-tools.ts";
import { type MemoryParts, memoryTools } from "../abilities/tools/memory/memory-tools.ts";
import { messageSendTool } from "../abilities/tools/messaging/message-send.ts";
import type { Spill } from "../abilities/tools/output.ts";
import { runtimeTools } from "../abilities/tools/runtime/runtime-tools.ts";
import { scheduleTool } from "../abilities/tools/schedule/schedule-tool.ts";
import { sessionTools } from "../abilities/tools/session/session-tools.ts";
import { createSpill } from "../abilities/tools/spill.ts";
import type { Tool } from "../abilities/tools/tool.ts";
import { webTools } from "../abilities/tools/web/web-tools.ts";
import type { ScheduleParts } from "../acts/schedules/schedule-parts.ts";
import type { Clock } from "../kernel/clock.ts";
import { asFailure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import type { Redact } from "../kernel/redact.ts";
import { BackgroundPrograms } from "../records/workspaces/sandbox/background.ts";
import { Sandboxes } from "../records/workspaces/sandbox/sandboxes.ts";
import { Workspaces } from "../records/workspaces/workspaces.ts";

export interface BuiltInParts extends CoordinationToolParts, MemoryParts {
  readonly home: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly schedules: ScheduleParts;
  readonly delegation: DelegationParts;
  readonly redact: Redact;
}

export interface BuiltInTools {
  readonly tools: readonly Tool[];
  readonly spill: Spill;
  /** Ends what runs in the background for agents who may do nothing now. */
  endOf(gone: (agent: string) => boolean): Promise<void>;
  /** Ends the programs that still run. */
  close(): Promise<void>;
}

/** Every tool of our own. Where the workspaces of agents cannot be kept apart, none that touches files is there. */
export async function builtInTools(parts: BuiltInParts): Promise<BuiltInTools> {
  const others = [
    ...webTools(),
    ...memoryTools(parts),
    ...contextTools(parts),
    ...coordinationTools(parts),
    ...sessionTools(),
    ...delegationTools(parts.delegation),
    scheduleTool(parts.schedules),
  ];
  try {
    const workspaces = await Workspaces.of(parts.home, { clock: parts.clock, newId: parts.newId });
    const sandboxes = new Sandboxes(workspaces, { newId: parts.newId, node: process.execPath });
    const background = new BackgroundPrograms(sandboxes, parts);
    const touching = [
      ...fileTools(workspaces),
      ...runtimeTools({ workspaces, sandboxes, background }),
      messageSendTool(parts.delegation.tasks, workspaces, parts.redact),
    ];
    const endOf = (gone: (agent: string) => boolean) => background.endOf(gone);
    return { tools: [...touching, ...others], spill: createSpill(workspaces), endOf, close: () => sandboxes.close() };
  } catch (error) {
    parts.log.warn("there are no tools for files and programs", { why: asFailure(error).message });
    return {
      tools: [...others, messageSendTool(parts.delegation.tasks, undefined, parts.redact)],
      spill: async () => null,
      endOf: async () => {},
      close: async () => {},
    };
  }
}
