import { Toolbox } from "../src/abilities/tools/toolbox.ts";
import type { TurnParts } from "../src/drivers/dispatch/prepare-turn.ts";
import { systemClock } from "../src/kernel/clock.ts";
import { noCrashPoints } from "../src/kernel/crash-points.ts";
import type { NewId } from "../src/kernel/ids.ts";
import type { Log } from "../src/kernel/log.ts";
import { Redaction } from "../src/kernel/redact.ts";
import { Approvals } from "../src/records/access/approvals.ts";
import { Personalities } from "../src/records/agents/personality.ts";
import { Pools } from "../src/records/pools/pools.ts";
import { KnownWorkflows } from "../src/records/workflows/known-workflows.ts";
import type { Store } from "../src/store/store.ts";
import { KnownTurns } from "../src/turns/known-turns.ts";
import { LiveHub } from "../src/turns/live-hub.ts";
import { personalitySource } from "../src/turns/personality-source.ts";
import { TurnsHere } from "../src/turns/turns-here.ts";

export const quiet: Log = { info: () => {}, warn: () => {}, error: () => {} };

/** What a turn needs beside agents and models: nothing that a test does not ask for. */
export function turnParts(store: Store, newId: NewId, home: string): Omit<TurnParts, "agents" | "models"> {
  return {
    store,
    newId,
    pools: new Pools(store),
    workflows: new KnownWorkflows(),
    toolbox: new Toolbox(async () => [], [], [], quiet),
    approvals: new Approvals(store, newId),
    sources: { system: [personalitySource(new Personalities(home))], recalled: [] },
    past: new KnownTurns(),
    live: new LiveHub(),
    running: new TurnsHere(),
    reached: noCrashPoints,
    clock: systemClock,
    redaction: new Redaction(),
    spill: async () => null,
    turnMs: 60_000,
    delivers: () => true,
  };
}
