import { taskSearchQuery } from "../../src/contract/tasks.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { Tasks } from "../../src/records/tasks/tasks.ts";
import { openStore } from "../../src/store/store.ts";
import { serve } from "../child.ts";
import { quantile } from "../spread.ts";
import { AGENTS, anyWord, COMMON, idOf, RARE, randomFrom, UNCOMMON, word } from "./texts.ts";

export interface SearchTask {
  readonly location: string;
  readonly tasks: number;
  readonly queries: number;
  readonly seed: number;
}

export interface Measured {
  readonly name: string;
  readonly p50: number;
  readonly p99: number;
  /** Of the processor time of the thread that searches: others on the machine do not count. */
  readonly cpu99: number;
  readonly found: number;
}

/** The most frequent words ("the", "of") are in every text, and nobody searches for them. */
const STOP_WORDS = 20;
const agent = (name: string): Caller => ({ kind: "agent", name, roles: [], run: null, step: null, call: null });

await serve<SearchTask, Measured[]>(async ({ location, tasks: count, queries, seed }) => {
  const store = await openStore(location);
  const tasks = new Tasks(store, { get: () => undefined });
  const random = randomFrom(seed);
  const anyAgent = (): Caller => agent(`agent-${Math.floor(random() * AGENTS)}`);
  const search =
    (caller: Caller, q: string, more: object = {}) =>
    async (): Promise<number> =>
      (await tasks.search(caller, taskSearchQuery.parse({ q, ...more }))).hits.length;
  const operators = { match: "operators" };
  const anyWords = (): string => Array.from({ length: 1 + Math.floor(random() * 3) }, () => anyWord(random, STOP_WORDS)).join(" ");
  const kinds: Readonly<Record<string, () => () => Promise<number>>> = {
    "operator: a word in every third task": () => search(OPERATOR, COMMON),
    "operator: two such words": () => search(OPERATOR, `${COMMON} ${word(0)}`),
    "operator: one in 200": () => search(OPERATOR, UNCOMMON),
    "operator: one in 100,000": () => search(OPERATOR, RARE),
    "operator: 1–3 words as people use them": () => search(OPERATOR, anyWords()),
    "operator: 3 of the most frequent words": () =>
      search(OPERATOR, [0, 1, 2].map(() => word(Math.floor(random() * STOP_WORDS))).join(" ")),
    "operator: any of 3 words": () => search(OPERATOR, [0, 1, 2].map(() => anyWord(random, STOP_WORDS)).join(" "), { match: "any" }),
    "operator: a phrase": () => search(OPERATOR, `"${COMMON} report"`, operators),
    "operator: a prefix of 3 letters": () => search(OPERATOR, `${anyWord(random, STOP_WORDS).slice(0, 3)}*`, operators),
    "operator: a prefix of 4 letters": () => search(OPERATOR, `${anyWord(random, STOP_WORDS).slice(0, 4)}*`, operators),
    "operator: a prefix of 6 letters": () => search(OPERATOR, `${anyWord(random, STOP_WORDS).slice(0, 6)}*`, operators),
    "operator: a word without another": () => search(OPERATOR, `${COMMON} -${word(3)}`, operators),
    "one of 200 agents: a word in every third task": () => search(anyAgent(), COMMON),
    "one of 200 agents: 1–3 words": () => search(anyAgent(), anyWords()),
    "who sees few: a word in every third task": () => search(agent("seldom"), COMMON),
    "who sees few: one in 100,000": () => search(agent("seldom"), RARE),
    "who sees nothing: a word in every third task": () => search(agent("nobody"), COMMON),
    "beginning of an id, searched by the operator": () =>
      search(OPERATOR, idOf(Math.floor(random() * count)).slice(0, 6 + Math.floor(random() * 15))),
    "beginning of an id, searched by an agent": () =>
      search(anyAgent(), idOf(Math.floor(random() * count)).slice(0, 6 + Math.floor(random() * 15))),
    "beginning of an id, read by the operator": () => {
      const id = idOf(Math.floor(random() * count)).slice(0, 20);
      return async () => (await tasks.read(OPERATOR, id)).id.length;
    },
  };
  const measured: Measured[] = [];
  for (const [name, make] of Object.entries(kinds)) {
    for (let index = 0; index < 5; index++) await make()();
    const times: number[] = [];
    const cpu: number[] = [];
    let found = 0;
    for (let index = 0; index < queries; index++) {
      const query = make();
      const [began, used] = [performance.now(), process.threadCpuUsage()];
      found += await query();
      times.push(performance.now() - began);
      const { user, system } = process.threadCpuUsage(used);
      cpu.push((user + system) / 1_000);
    }
    times.sort((a, b) => a - b);
    cpu.sort((a, b) => a - b);
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
    measured.push({ name, p50, p99, cpu99: quantile(cpu, 0.99), found: found / queries });
  }
  await store.close();
  return measured;
});
