/** What one child does: the same for all who are compared. */
export interface StepsTask {
  readonly folder: string;
  readonly shape: "chain" | "fan";
  /** Of one run: a chain of so many, or so many side by side. */
  readonly steps: number;
  readonly runs: number;
  /** Runs that are under way at the same time. */
  readonly atOnce: number;
  /** Synced to the disk with every commit, or as the database sees fit. */
  readonly synced: boolean;
}

export interface StepsResult {
  readonly msPerStep: number;
  readonly fsyncsPerStep: number | null;
}

const WARM_UP_RUNS = 4;

/** Untimed runs first, then the timed ones, so many at once. */
export async function timeRuns(
  { steps, runs, atOnce }: StepsTask,
  run: (name: string) => Promise<void>,
  fsyncs: () => number | null,
): Promise<StepsResult> {
  for (let index = 0; index < WARM_UP_RUNS; index++) await run(`warm-up-${index}`);
  const before = fsyncs();
  const begun = performance.now();
  let next = 0;
  const line = async (): Promise<void> => {
    while (next < runs) await run(`run-${next++}`);
  };
  await Promise.all(Array.from({ length: atOnce }, line));
  const ms = performance.now() - begun;
  const after = fsyncs();
  const all = runs * steps;
  return { msPerStep: ms / all, fsyncsPerStep: before === null || after === null ? null : (after - before) / all };
}
