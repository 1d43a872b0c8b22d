import { parseArgs } from "node:util";
import { NO_REAL_MODELS } from "../no-real-models.ts";
import { channelsChaos } from "./channels-chaos.ts";
import { type ApiChaosReport, apiChaos } from "./http-chaos.ts";
import { type ChaosReport, storeChaos } from "./store-chaos.ts";
import { turnsChaos } from "./turns-chaos.ts";
import { workflowsChaos } from "./workflows-chaos.ts";

const USAGE = `npm run chaos -- store|api|turns|workflows|channels [--cycles N] [--database sqlite|postgres] [--seed N] [--json]

  store   kill -9 at random and at every crash point, pauses past the lease, full disk, no file handles,
          PostgreSQL crashes and broken connections; counts from outside what was acknowledged and what is there
          (default: 500 cycles on sqlite, 100 on postgres; both unless one is named)
  api     client processes work on daemons over HTTP, one or two at a time, while these are killed and come back; their histories
          are checked for pools, watchers, claims, mail, proposals and idempotency keys
          (default: 100 deaths on each database)
  turns   a daemon dies at every line of a turn with calls of all three classes, and in the moment in which something was done outside;
          what was done is counted outside (default: 20 deaths at each point; --cycles is for each point)
  workflows  a daemon dies at every line of workflows with ten branches, and at random; what was done is counted outside
          (default: 10 deaths at each point and 100 at random; --cycles is for each point, ten times as many at random)
  channels  a daemon dies around everything that comes from a chat platform and goes there; the platform counts what it sees
          (default: 300 deaths on sqlite, at each of five points and at random in turn; postgres when it is named)`;

Object.assign(process.env, NO_REAL_MODELS);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { cycles: { type: "string" }, database: { type: "string" }, seed: { type: "string" }, json: { type: "boolean" } },
});

function table(record: Readonly<Record<string, number>>): string {
  return Object.entries(record)
    .map(([name, count]) => `    ${name.padEnd(32)} ${count}`)
    .join("\n");
}

function print(report: ChaosReport, seconds: number): void {
  const { verdict } = report;
  console.log(`\nstore on ${report.database}, seed ${report.seed}, ${seconds.toFixed(0)} s`);
  console.log(`  cycles\n${table(report.cycles)}`);
  console.log(`  killed at crash point\n${table(report.hits)}`);
  console.log(`  refused with a typed error\n${table(report.refused) || "    none"}`);
  console.log(
    `  acknowledged ${report.acknowledged}   lost ${verdict.lost}   duplicated ${verdict.duplicated}   half-applied ${verdict.halfApplied}   other ${verdict.otherwise}`,
  );
  for (const line of [...verdict.examples, ...report.victimErrors]) console.log(`  ! ${line}`);
}

function printApi(report: ApiChaosReport, seconds: number): void {
  console.log(`\napi on ${report.database}, seed ${report.seed}, ${seconds.toFixed(0)} s`);
  console.log(`  deaths of daemons\n${table(report.deaths)}`);
  console.log(`  seen by the clients\n${table(report.counts)}`);
  console.log(`  problems ${report.problems.length}`);
  for (const line of report.problems.slice(0, 20)) console.log(`  ! ${line}`);
}

const DATABASES = ["sqlite", "postgres"] as const;
type Database = (typeof DATABASES)[number];

async function store(database: Database): Promise<boolean> {
  const cycles = Number(values.cycles ?? (database === "sqlite" ? 500 : 100));
  const started = performance.now();
  const report = await storeChaos({ database, cycles, seed, progress: (line) => console.error(`  ${database}: ${line}`) });
  if (values.json) console.log(JSON.stringify(report));
  else print(report, (performance.now() - started) / 1000);
  const { lost, duplicated, halfApplied, otherwise } = report.verdict;
  return lost + duplicated + halfApplied + otherwise + report.victimErrors.length === 0;
}

async function api(database: Database): Promise<boolean> {
  const cycles = Number(values.cycles ?? 100);
  const started = performance.now();
  const progress = (line: string): void => console.error(`  ${database}: ${line}`);
  const report = await apiChaos({ database, cycles, seed, drainMs: 20_000, progress });
  if (values.json) console.log(JSON.stringify(report));
  else printApi(report, (performance.now() - started) / 1000);
  return report.problems.length === 0;
}

async function turns(database: Database): Promise<boolean> {
  const started = performance.now();
  const progress = (line: string): void => console.error(`  ${database}: ${line}`);
  const report = await turnsChaos({ database, hits: Number(values.cycles ?? 20), seed, progress });
  if (values.json) console.log(JSON.stringify(report));
  else {
    console.log(`\nturns on ${report.database}, seed ${report.seed}, ${((performance.now() - started) / 1000).toFixed(0)} s`);
    console.log(`  killed at\n${table(report.hits)}`);
    console.log(`  messages ${report.messages}\n${table(report.counts)}`);
    console.log(`  problems ${report.problems.length}`);
    for (const line of report.problems.slice(0, 20)) console.log(`  ! ${line}`);
  }
  return report.problems.length === 0;
}

async function workflows(database: Database): Promise<boolean> {
  const started = performance.now();
  const progress = (line: string): void => console.error(`  ${database}: ${line}`);
  const hits = Number(values.cycles ?? 10);
  const report = await workflowsChaos({ database, hits, randomly: 10 * hits, seed, progress });
  if (values.json) console.log(JSON.stringify(report));
  else {
    console.log(`\nworkflows on ${report.database}, seed ${report.seed}, ${((performance.now() - started) / 1000).toFixed(0)} s`);
    console.log(`  killed at\n${table(report.hits)}`);
    console.log(`  workflows ${report.workflows}\n${table(report.counts)}`);
    console.log(`  problems ${report.problems.length}`);
    for (const line of report.problems.slice(0, 20)) console.log(`  ! ${line}`);
  }
  return report.problems.length === 0;
}

async function channels(database: Database): Promise<boolean> {
  if (database === "postgres" && !values.database) return true;
  const started = performance.now();
  const progress = (line: string): void => console.error(`  ${database}: ${line}`);
  console.error(`  ${database}: seed ${seed}`);
  const report = await channelsChaos({ database, kills: Number(values.cycles ?? 300), seed, progress });
  if (values.json) console.log(JSON.stringify(report));
  else {
    console.log(`\nchannels on ${report.database}, seed ${report.seed}, ${((performance.now() - started) / 1000).toFixed(0)} s`);
    console.log(`  killed at\n${table(report.hits)}`);
    console.log(`  messages ${report.messages}\n${table(report.counts)}`);
    console.log(`  problems ${report.problems.length}`);
    for (const line of report.problems.slice(0, 20)) console.log(`  ! ${line}`);
  }
  return report.problems.length === 0;
}

const KINDS = { store, api, turns, workflows, channels };
const kind = positionals[0] as keyof typeof KINDS;
if (!Object.hasOwn(KINDS, kind ?? "")) {
  console.error(USAGE);
  process.exit(2);
}
const seed = values.seed ? Number(values.seed) : Math.floor(Math.random() * 2 ** 31);
let failed = false;
for (const database of DATABASES) {
  if (values.database && values.database !== database) continue;
  const passed = await KINDS[kind](database);
  failed ||= !passed;
}
process.exit(failed ? 1 : 0);
