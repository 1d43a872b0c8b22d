import type { Clock } from "../kernel/clock.ts";
import type { NewId } from "../kernel/ids.ts";
import type { Personalities } from "../records/agents/personality.ts";
import type { Skills } from "../records/agents/skills.ts";
import type { Memory } from "../records/memory/memory.ts";
import type { Pools } from "../records/pools/pools.ts";
import { Workspaces } from "../records/workspaces/workspaces.ts";
import type { ContextSources } from "../turns/open-turn.ts";
import { personalitySource } from "../turns/personality-source.ts";
import { houseRules } from "../turns/sources/house-rules.ts";
import { memorySource } from "../turns/sources/memory.ts";
import { placeSource } from "../turns/sources/place.ts";
import { skillsIndex } from "../turns/sources/skills-index.ts";
import { stepReads } from "../turns/sources/step-reads.ts";
import { workspaceNotes } from "../turns/sources/workspace-notes.ts";

export interface SourceParts {
  readonly home: string;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly personalities: Personalities;
  readonly skills: Skills;
  readonly memory: Memory;
  readonly pools: Pools;
}

/** What models are told, in this order: what stays the same longest comes first, for the caches of providers. */
export function contextSources({ home, clock, newId, personalities, skills, memory, pools }: SourceParts): ContextSources {
  let opened: Promise<Workspaces> | undefined;
  const workspaces = (): Promise<Workspaces> => {
    opened ??= Workspaces.of(home, { clock, newId });
    return opened;
  };
  return {
    system: [personalitySource(personalities), houseRules, workspaceNotes(workspaces, clock), skillsIndex(skills)],
    recalled: [placeSource(clock), memorySource(memory, home), stepReads(pools)],
  };
}
