/** A piece of work that was committed: of each key the version it read and the one it wrote. Version 0: there was none. */
export interface CommittedWork {
  readonly name: string;
  readonly reads: ReadonlyMap<string, number>;
  readonly writes: ReadonlyMap<string, number>;
  readonly called: number;
  readonly returned: number;
}

/**
 * Could they have been done one after another, in an order that respects real time? Undefined: yes. Otherwise a circle, each of which
 * must have come before the next. Whoever wrote a version comes before those who read it or wrote the next; they before who replaced it.
 */
export function circleIn(history: readonly CommittedWork[]): string[] | undefined {
  const writers = new Map<string, [version: number, work: CommittedWork][]>();
  for (const work of history) for (const [key, version] of work.writes) writers.set(key, [...(writers.get(key) ?? []), [version, work]]);
  for (const versions of writers.values()) versions.sort(([a], [b]) => a - b);
  const nextWriter = (key: string, after: number) => writers.get(key)?.find(([version]) => version > after)?.[1];

  const later = new Map<CommittedWork, Set<CommittedWork>>(history.map((work) => [work, new Set()]));
  const order = (before: CommittedWork | undefined, after: CommittedWork | undefined): void => {
    if (before && after && before !== after) later.get(before)?.add(after);
  };
  for (const work of history) {
    for (const [key, version] of work.reads) {
      order(writers.get(key)?.find(([written]) => written === version)?.[1], work);
      order(work, nextWriter(key, version));
    }
    for (const [key, version] of work.writes) order(work, nextWriter(key, version));
    for (const other of history) if (work.returned < other.called) order(work, other);
  }
  return findCircle(later);
}

function findCircle(later: ReadonlyMap<CommittedWork, ReadonlySet<CommittedWork>>): string[] | undefined {
  const done = new Set<CommittedWork>();
  const path: CommittedWork[] = [];
  const visit = (work: CommittedWork): string[] | undefined => {
    if (path.includes(work)) return path.slice(path.indexOf(work)).map(({ name }) => name);
    if (done.has(work)) return undefined;
    path.push(work);
    for (const next of later.get(work) ?? []) {
      const circle = visit(next);
      if (circle) return circle;
    }
    path.pop();
    done.add(work);
    return undefined;
  };
  for (const work of later.keys()) {
    const circle = visit(work);
    if (circle) return circle;
  }
  return undefined;
}
