import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { postgresPlace } from "../stores.ts";
import { DaemonLife } from "./daemon-life.ts";
import { Witness } from "./turns-witness.ts";
import { play, UpgradeLoad } from "./upgrade-load.ts";

const CHECKOUT = new URL("../..", import.meta.url).pathname;
const WORKER = new URL("./upgrade-daemon-worker.ts", import.meta.url).pathname;
/** The last commit of 0.1.0. */
const PREVIOUS = "3c07c2c";
const LEASE_MS = 3_000;

export interface UpgradeReport {
  readonly done: readonly string[];
  readonly counts: Record<string, number>;
  readonly problems: string[];
}

/**
 * From 0.1.0 to this version on one PostgreSQL, under load all the while: two nodes of the old one, then one of the new beside them, which
 * migrates; one of each is killed, the last old one stops in order. 0.1.0 cannot start again on the newer schema, which is seen too.
 */
export async function upgradeChaos(options: {
  readonly postgresUrl?: string;
  readonly seconds: number;
  readonly progress: (line: string) => void;
}): Promise<UpgradeReport> {
  const base = mkdtempSync(join(tmpdir(), "guildhall-upgrade-"));
  const previous = extractPrevious(base);
  const place = postgresPlace(options.postgresUrl);
  const config = `store: ${JSON.stringify(place.location)}\nmodel: outside/model\ntools: full\nagents: { main: {}, worker: {} }\n`;
  const witness = await Witness.start(play);
  const done: string[] = [];
  const lives: DaemonLife[] = [];
  const say = (line: string): void => {
    done.push(line);
    options.progress(line);
  };
  const begin = async (source: string, name: string): Promise<DaemonLife> => {
    const home = join(base, name);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "guildhall.yaml"), config);
    const life = await DaemonLife.begin({ source, home, name, witness: witness.url, leaseMs: LEASE_MS }, {}, WORKER);
    lives.push(life);
    return life;
  };
  const load = new UpgradeLoad(() => lives);
  const awhile = (): Promise<void> => sleep((options.seconds / 6) * 1_000);
  try {
    const oldOne = await begin(previous, "old1");
    const oldTwo = await begin(previous, "old2");
    await load.begin();
    await awhile();
    say(`0.1.0 works on two nodes, ${load.sent} sent`);
    let newOne = await begin(CHECKOUT, "new1");
    say(`this version has migrated beside them, ${load.sent} sent`);
    await awhile();
    await newOne.kill();
    newOne = await begin(CHECKOUT, "new1");
    say(`the new node was killed and is back, ${load.sent} sent`);
    await awhile();
    await oldOne.kill();
    say(`an old node was killed, ${load.sent} sent`);
    const again = await begin(previous, "old1").then(
      () => "it started",
      (error: Error) => (/store\.newer_schema|knows up to/.test(error.message) ? "refused" : error.message),
    );
    say(`it cannot come back on the newer schema: ${again}`);
    await awhile();
    const begun = performance.now();
    oldTwo.signal("SIGTERM");
    await oldTwo.ended;
    say(`the other old node has stopped in ${((performance.now() - begun) / 1000).toFixed(1)} s, ${load.sent} sent`);
    await awhile();
    await begin(CHECKOUT, "new2");
    await awhile();
    await load.end();
    const { problems, counts } = await load.check(newOne, witness);
    if (again !== "refused") problems.push(`0.1.0 on the newer schema: ${again}`);
    return { done, counts, problems };
  } finally {
    await load.end().catch(() => {});
    for (const life of lives) await life.kill();
    witness.close();
    await place.remove();
    rmSync(base, { recursive: true, force: true });
  }
}

function extractPrevious(base: string): string {
  const folder = join(base, "previous");
  mkdirSync(folder);
  try {
    execFileSync("bash", ["-c", `set -o pipefail; git -C "$1" archive ${PREVIOUS} | tar -x -C "$2"`, "bash", CHECKOUT, folder], {
      stdio: "pipe",
    });
  } catch {
    rmSync(base, { recursive: true, force: true });
    throw new Error(
      `the history of this checkout does not reach back to ${PREVIOUS} (0.1.0), the version to upgrade from: git fetch --unshallow`,
    );
  }
  symlinkSync(join(CHECKOUT, "node_modules"), join(folder, "node_modules"));
  return folder;
}
