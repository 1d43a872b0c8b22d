/** What several rounds said: the median counts, the rest shows how noisy the machine was. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = ((sorted[Math.ceil(middle) - 1] as number) + (sorted[Math.floor(middle)] as number)) / 2;
  return { median, min: sorted[0] as number, max: sorted.at(-1) as number };
}

/** Round by round: both sides of one round saw the same machine, those of different rounds did not. */
export function ratios(ours: readonly number[], theirs: readonly number[]): Spread {
  return spread(ours.map((value, round) => value / (theirs[round] as number)));
}

export function quantile(sorted: ArrayLike<number>, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] as number;
}

/** Runs the sides A B C, A B C, … and answers each side's results in order of rounds. */
export async function interleave<Side extends string, Result>(
  sides: Readonly<Record<Side, () => Promise<Result>>>,
  rounds: number,
  progress: (line: string) => void,
): Promise<Record<Side, Result[]>> {
  const names = Object.keys(sides) as Side[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Side, Result[]>;
  for (let round = 1; round <= rounds; round++)
    for (const name of names) {
      progress(`round ${round} of ${rounds}: ${name}`);
      results[name].push(await sides[name]());
    }
  return results;
}
