import { cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { NO_REAL_MODELS } from "../test/no-real-models.ts";
import { asJson, asTable, missed, type Section } from "./report.ts";

Object.assign(process.env, NO_REAL_MODELS);

export interface BenchOptions {
  readonly rounds: number;
  /** Only these parts of the benchmark; all when empty. */
  readonly parts: readonly string[];
  /** Of what is measured for long. */
  readonly minutes: number;
  readonly progress: (line: string) => void;
}

interface Benchmark {
  readonly about: string;
  readonly load: () => Promise<{ run(options: BenchOptions): Promise<Section[]> }>;
}

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  store: { about: "durable writes, work queue, wake-up, point reads (parts: writes queue wake reads)", load: () => import("./store.ts") },
  pools: { about: "shared memory: durable writes, reads, watch (parts: writes reads watch)", load: () => import("./pools.ts") },
  coordination: {
    about: "10,000 claims and 10,000 mails in flight: latency, and the daemon's memory (parts: sqlite postgres)",
    load: () => import("./coordination.ts"),
  },
  turns: {
    about: "what the gateway adds to a turn, turns per second, 200 agents at once (parts: sqlite postgres fair)",
    load: () => import("./turns.ts"),
  },
  footprint: { about: "time to ready and memory with 1, 50 and 1,000 agents (parts: 1 50 1000)", load: () => import("./footprint.ts") },
  tasks: { about: "search over 1,000,000 tasks, by words and by ids (parts: sqlite postgres)", load: () => import("./tasks.ts") },
  routing: { about: "routes with 10,000 bindings (parts: routes openclaw)", load: () => import("./routing.ts") },
  workflows: {
    about: "a durable step beside LangGraph.js with its SQLite saver and Mastra with LibSQL (parts: chain fan)",
    load: () => import("./workflows.ts"),
  },
  load: {
    about: "messages of a chat platform for --minutes n (10), then ten times as many: rate, latency, memory, getting over it",
    load: () => import("./load.ts"),
  },
  nodes: {
    about: "processor time and statements of a message on 1, 2 and 4 nodes, and of a node with nothing to do (parts: messages idle)",
    load: () => import("./nodes.ts"),
  },
  relay: { about: "tokens and facts when results go through a parent, or through shared memory", load: () => import("./relay.ts") },
  "side-by-side": {
    about: "what goes wrong in LangGraph.js, Mastra and here (parts: lost-updates isolation double-resume zombie)",
    load: () => import("./side-by-side.ts"),
  },
};

const USAGE = `npm run bench -- <name> [part…] [--rounds n] [--minutes n] [--json]\n
${Object.entries(BENCHMARKS)
  .map(([name, { about }]) => `  ${name.padEnd(12)} ${about}`)
  .join("\n")}
  all          every one of them`;

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      rounds: { type: "string", default: "3" },
      minutes: { type: "string", default: "10" },
    },
  });
  const [name, ...parts] = positionals;
  const rounds = Number(values.rounds);
  const minutes = Number(values.minutes);
  const chosen = name === "all" ? Object.keys(BENCHMARKS) : name ? [name] : [];
  if (chosen.length === 0 || !Number.isInteger(rounds) || rounds < 1 || !(minutes > 0) || chosen.some((one) => !BENCHMARKS[one])) {
    console.log(USAGE);
    return name === undefined ? 0 : 2;
  }
  const progress = (line: string): void => void process.stderr.write(`${line}\n`);
  const sections: Section[] = [];
  for (const one of chosen) {
    const benchmark = await (BENCHMARKS[one] as Benchmark).load();
    sections.push(...(await benchmark.run({ rounds, minutes, parts, progress })));
  }
  const cores = cpus();
  const machine = { cores: cores.length, cpu: cores[0]?.model, memory: totalmem(), node: process.version, rounds };
  console.log(values.json ? asJson(sections, machine) : asTable(sections));
  const failing = missed(sections);
  if (!values.json) console.log(failing.length === 0 ? "all goals met" : `${failing.length} goals NOT met`);
  return failing.length === 0 ? 0 : 1;
}

process.exitCode = await main();
