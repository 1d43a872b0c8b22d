import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { keepCompiled } from "../compile-cache.ts";
import { NO_REAL_MODELS } from "../no-real-models.ts";
import { type PostgresServer, startPostgres } from "../postgres-server.ts";
import { channelsChaos } from "./channels-chaos.ts";
import { followGuide } from "./guide.ts";
import { type ApiChaosReport, apiChaos } from "./http-chaos.ts";
import { nodesChaos } from "./nodes-chaos.ts";
import { fanOut } from "./nodes-fan-out.ts";
import { percentile, seconds, TAKEOVER_MS, takeovers } from "./nodes-takeover.ts";
import { type ChaosReport, storeChaos } from "./store-chaos.ts";
import { turnsChaos } from "./turns-chaos.ts";
import { upgradeChaos } from "./upgrade-chaos.ts";
import { workflowsChaos } from "./workflows-chaos.ts";

const USAGE = `npm run chaos -- store|api|turns|workflows|channels|nodes|fan-out|upgrade|guide [--cycles N] [--database sqlite|postgres] [--seed N] [--json]

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
          (default: 300 deaths on sqlite, at each of five points and at random in turn; postgres when it is named)
  nodes   three nodes on one PostgreSQL under load, at a lease of 2 s: killed, stopped and cut off from the database for longer than the
          lease, and the database crashed; then takeovers at the lease of 15 s, and a workflow with fan-out 50 while a node is killed
          (default: --kills 200 --pauses 50 --partitions 50 --crashes 20 --takeovers 10; 0 leaves a part out)
          It keeps where it stands after every 32 faults in --progress FILE (default: guildhall-chaos-nodes.json where temporary files are);
          stopped at any time, --resume goes on from there with the same seed. What is left is done even when problems were found
  fan-out a workflow with fan-out 50 over three nodes while one is killed (--cycles N: with as many branches)
  upgrade  two nodes of 0.1.0 and then one of this version on one PostgreSQL, under load; one of each is killed, the last old one stops
          (needs the history of git; --cycles: for how many seconds, 60)
  guide   follows docs/deployment.md on machines that are empty as far as files go: PostgreSQL and HAProxy from Debian's packages, two nodes
          (needs root on Debian, and its packages and npm's from the network)`;

Object.assign(process.env, NO_REAL_MODELS);
const removeCompiled = keepCompiled();
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ cycles: { type: "string" }, database: { type: "string" }, seed: { type: "string" }, json: { type: "boolean" } },
    ...{ kills: { type: "string" }, pauses: { type: "string" }, partitions: { type: "string" }, crashes: { type: "string" } },
    ...{ takeovers: { type: "string" }, progress: { type: "string" }, resume: { type: "boolean" } },
  },
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

let server: PostgresServer | undefined;

/** One for the whole run. */
async function serverFor(database: Database): Promise<{ readonly postgresUrl?: string }> {
  if (database === "sqlite") return {};
  server ??= await startPostgres();
  return { postgresUrl: server.url };
}

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
  const report = await turnsChaos({ database, hits: Number(values.cycles ?? 20), seed, progress, ...(await serverFor(database)) });
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
  const report = await workflowsChaos({ database, hits, randomly: 10 * hits, seed, progress, ...(await serverFor(database)) });
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
  const report = await channelsChaos({ database, kills: Number(values.cycles ?? 300), seed, progress, ...(await serverFor(database)) });
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

/** PostgreSQL alone: a file has one node. */
async function nodes(database: Database): Promise<boolean> {
  if (database === "sqlite") return true;
  const progress = (line: string): void => console.error(`  nodes: ${line}`);
  const times = Number(values.takeovers ?? 10);
  const faults = {
    kill: Number(values.kills ?? 200),
    pause: Number(values.pauses ?? 50),
    partition: Number(values.partitions ?? 50),
    "server crash": Number(values.crashes ?? 20),
  };
  const file = values.progress ?? join(tmpdir(), "guildhall-chaos-nodes.json");
  progress(`${values.resume ? "going on" : `seed ${seed}`}; where it stands is kept in ${file}`);
  const report = await nodesChaos({ faults, seed, file, resume: values.resume ?? false, progress });
  const taken = times > 0 ? await takeovers(times, progress) : { turns: [], polls: [], problems: [] };
  const all = [...taken.turns, ...taken.polls];
  const wide = await fanOut(50);
  const problems = [...report.problems, ...taken.problems, ...wide.problems];
  if (all.length > 0 && percentile(all, 0.99) > TAKEOVER_MS) problems.push(`takeover took ${seconds(percentile(all, 0.99))}`);
  if (values.json) console.log(JSON.stringify({ report, taken, wide }));
  else {
    console.log(`\nnodes, seed ${report.seed}, ${report.rounds} rounds in ${report.seconds.toFixed(0)} s`);
    console.log(`  faults\n${table(report.done)}\n  killed at\n${table(report.hits)}\n  seen\n${table(report.counts)}`);
    for (const [what, each] of Object.entries(times > 0 ? { "a turn": taken.turns, "the account": taken.polls } : {}))
      console.log(
        `  takeover of ${what}, ${each.length} times: p50 ${seconds(percentile(each, 0.5))}, p99 ${seconds(percentile(each, 0.99))}, longest ${seconds(Math.max(...each))}`,
      );
    console.log(
      `  fan-out ${wide.branches}, ${wide.killed} killed in the middle, ${wide.seconds.toFixed(1)} s; branches begun by\n${table(wide.ran)}`,
    );
    console.log(`  problems ${problems.length}`);
    for (const line of problems.slice(0, 40)) console.log(`  ! ${line}`);
  }
  return problems.length === 0;
}

async function wideWorkflow(database: Database): Promise<boolean> {
  if (database === "sqlite") return true;
  const { branches, killed, seconds: took, ran, counts, problems } = await fanOut(Number(values.cycles ?? 50));
  console.log(
    `\nfan-out ${branches}, ${killed} killed in the middle, ${took.toFixed(1)} s\n  branches begun by\n${table(ran)}\n${table(counts)}`,
  );
  for (const line of problems) console.log(`  ! ${line}`);
  return problems.length === 0;
}

async function upgrade(database: Database): Promise<boolean> {
  if (database === "sqlite") return true;
  const progress = (line: string): void => console.error(`  upgrade: ${line}`);
  const report = await upgradeChaos({ seconds: Number(values.cycles ?? 60), progress, ...(await serverFor(database)) });
  console.log(`\nupgrade from 0.1.0\n${table(report.counts)}\n  problems ${report.problems.length}`);
  for (const line of report.problems.slice(0, 20)) console.log(`  ! ${line}`);
  return report.problems.length === 0;
}

/** It brings its own database. */
async function guide(database: Database): Promise<boolean> {
  if (database === "sqlite") return true;
  const report = await followGuide((line) => console.error(`  guide: ${line}`));
  console.log("\nthe guide to deployment, followed");
  for (const [what, seen] of Object.entries(report.done)) console.log(`    ${what}: ${seen}`);
  for (const line of report.problems) console.log(`  ! ${line}`);
  return report.problems.length === 0;
}

const KINDS = { store, api, turns, workflows, channels, nodes, "fan-out": wideWorkflow, upgrade, guide };
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
await server?.remove();
removeCompiled();
process.exit(failed ? 1 : 0);
