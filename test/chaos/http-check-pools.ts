import type { Entry } from "../../src/contract/pools.ts";
import { counterKey, type PoolInput, pairKeys, REGISTERS, registerKey, type Told, type Watched } from "./http-records.ts";
import { refuted } from "./http-register.ts";

export type Histories = ReadonlyMap<string, readonly Entry[]>;
type Of<Kind extends Told["kind"]> = Extract<Told, { kind: Kind }>;
export const only = <Kind extends Told["kind"]>(told: readonly Told[], kind: Kind): Of<Kind>[] =>
  told.filter((each): each is Of<Kind> => each.kind === kind);

const wanted = (input: PoolInput): unknown => ("write" in input ? input.write : "swap" in input ? input.swap[1] : undefined);

/** What is wrong with the entries: by the answers alone, and against what `/history` says in the end. */
export function poolProblems(told: readonly Told[], histories: Histories, generations: number): string[] {
  const operations = Map.groupBy(only(told, "entry"), (each) => each.key);
  const problems: string[] = [];
  for (let generation = 0; generation < generations; generation++) {
    const counter = counterKey(generation);
    const keys = [...Array.from({ length: REGISTERS }, (_, index) => registerKey(generation, index)), counter];
    for (const key of keys) {
      const asked = operations.get(key) ?? [];
      const history = histories.get(key) ?? [];
      const why = refuted(asked);
      if (why) problems.push(`V1 ${key}: ${why}`);
      problems.push(...versionProblems(key, asked, history, key === counter));
    }
    problems.push(...counterProblems(counter, operations.get(counter) ?? [], histories.get(counter) ?? []));
    problems.push(...pairProblems(generation, told, histories));
  }
  return problems;
}

function versionProblems(key: string, asked: readonly Of<"entry">[], history: readonly Entry[], counter: boolean): string[] {
  const problems: string[] = [];
  for (const [index, entry] of history.entries())
    if (entry.version !== index + 1) problems.push(`V2 ${key}: version ${entry.version} stands where ${index + 1} should`);
  const given = new Set<number>();
  for (const { output, by } of asked) {
    if (!output || !("wrote" in output)) continue;
    const [version, value] = output.wrote;
    if (given.has(version)) problems.push(`V2 ${key}: version ${version} was given out twice`);
    given.add(version);
    const kept = history[version - 1];
    if (!kept || kept.deleted || kept.value !== value || kept.author.agent !== by)
      problems.push(`D1 ${key}: version ${version} was acknowledged to ${by} and is not there`);
  }
  const tried = new Set(asked.map(({ input }) => wanted(input)));
  const values = history.filter((entry) => !entry.deleted).map((entry) => entry.value);
  for (const value of values) if (!tried.has(value)) problems.push(`V1 ${key}: nobody ever wrote ${JSON.stringify(value)}`);
  if (!counter && new Set(values).size < values.length) problems.push(`V1 ${key}: a write has happened twice`);
  return problems;
}

function counterProblems(key: string, asked: readonly Of<"entry">[], history: readonly Entry[]): string[] {
  const swaps = asked.filter(({ input }) => "swap" in input);
  const done = swaps.filter(({ output }) => output && "wrote" in output).length;
  const open = swaps.filter(({ output }) => output === null).length;
  const final = (history.at(-1)?.value as number | undefined) ?? 0;
  const problems: string[] = [];
  if (final < done || final > done + open)
    problems.push(`V3 ${key}: is ${final} after ${done} acknowledged and ${open} unanswered increments`);
  if (history.some((entry) => entry.value !== entry.version)) problems.push(`V3 ${key}: an increment was not made upon the one before it`);
  return problems;
}

/** Both keys of a batch or neither, in the same order, and each batch once however often it was sent. */
function pairProblems(generation: number, told: readonly Told[], histories: Histories): string[] {
  const [left, right] = pairKeys(generation).map((key) => histories.get(key) ?? []) as [readonly Entry[], readonly Entry[]];
  const problems: string[] = [];
  const seen = (entries: readonly Entry[]): string => JSON.stringify(entries.map(({ value, seq }) => [value, seq]));
  if (seen(left) !== seen(right)) problems.push(`V4 generation ${generation}: batches were torn apart or reordered`);
  const times = Map.groupBy(left, (entry) => entry.value as string);
  for (const { value, versions, generation: of } of only(told, "pair")) {
    if (of !== generation) continue;
    const count = times.get(value)?.length ?? 0;
    times.delete(value);
    if (versions ? count !== 1 : count > 1) problems.push(`E1 the batch of ${value} has happened ${count} times`);
    if (versions && (left[(versions[0] as number) - 1]?.value !== value || right[(versions[1] as number) - 1]?.value !== value))
      problems.push(`E1 the batch of ${value} was answered with versions that are not its own`);
  }
  for (const value of times.keys()) problems.push(`E1 nobody sent the batch of ${value}`);
  return problems;
}

/** Every operation on the pool, once, in order, whole: as many events as the histories have, and the same ones. */
export function watchProblems(watched: readonly Watched[], histories: Histories): string[] {
  const problems: string[] = [];
  for (const [index, { seq }] of watched.entries())
    if (index > 0 && seq <= (watched[index - 1] as Watched).seq)
      problems.push(`V5 event ${seq} came after event ${watched[index - 1]?.seq}`);
  const made = Map.groupBy([...histories.values()].flat(), (entry) => entry.seq);
  const line = (keys: readonly { key: string; version: number; deleted?: boolean }[]): string =>
    keys
      .map(({ key, version, deleted }) => `${key}@${version}${deleted ? "-" : ""}`)
      .sort()
      .join(" ");
  const seen = new Map(watched.map(({ seq, keys }) => [seq, line(keys)]));
  for (const [seq, entries] of made) {
    const expected = line(entries);
    if (!seen.has(seq)) problems.push(`V5 event ${seq} (${expected}) was never shown`);
    else if (seen.get(seq) !== expected) problems.push(`V5 event ${seq} was shown as ${seen.get(seq)}, and is ${expected}`);
  }
  for (const seq of seen.keys())
    if (!made.has(seq)) problems.push(`V5 event ${seq} (${seen.get(seq)}) was shown, and nothing had happened`);
  return problems;
}
