import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { DelegatingHouse, delegate } from "../contract/delegating-house.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";

const WORKER = fileURLToPath(new URL("./spawning-worker.ts", import.meta.url));
const MOST_CHILDREN = 7;
const main = (more: object = {}) => ({
  agents: {
    main: { model: "test/model", default: true, subagents: { max_children: MOST_CHILDREN, max_depth: 2 }, ...more },
  },
});

interface Report {
  readonly outcomes: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly most: number;
}

/** Two processes, `spawns` each, from the same moment on. */
async function race(location: string, config: object, runs: readonly string[], spawns: number, cancels = false): Promise<Report[]> {
  const nodes = [1, 2].map(() => {
    const args = [WORKER, location, JSON.stringify(config), runs.join(","), String(spawns), ...(cancels ? ["cancels"] : [])];
    const child = spawn(process.execPath, ["--no-warnings", ...args], { stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    return { child, text: () => text };
  });
  await Promise.all(nodes.map(({ child }) => once(child.stdout, "data")));
  for (const { child } of nodes) child.stdin.write("go\n");
  await Promise.all(nodes.map(({ child }) => once(child, "exit")));
  return nodes.map(({ text }) => JSON.parse(text().trim().split("\n").at(-1) as string) as Report);
}

function sum(reports: readonly Report[], run: string): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { outcomes } of reports) for (const [key, count] of Object.entries(outcomes[run] ?? {})) all[key] = (all[key] ?? 0) + count;
  return all;
}

describe("W4: 100 spawns at once from two processes on one PostgreSQL", () => {
  let place: StorePlace;
  let store: Store;
  let house: DelegatingHouse;

  beforeEach(async () => {
    place = postgresPlace();
    store = await place.open();
    house = new DelegatingHouse(store, main());
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  test("take exactly the places there are, and not one more", async () => {
    const { runId } = await house.send("go");
    const reports = await race(place.location, main(), [runId], 50);
    expect(sum(reports, runId)).toEqual({ opened: MOST_CHILDREN, "task.too_many": 100 - MOST_CHILDREN });
    expect(await house.tasks()).toHaveLength(MOST_CHILDREN);
    expect((await house.told("task.opened")).length).toBe(MOST_CHILDREN);
    expect((await house.told("task.refused")).length).toBe(100 - MOST_CHILDREN);
  });

  test("with tasks that end meanwhile there are never more open than may be", async () => {
    const { runId } = await house.send("go");
    const reports = await race(place.location, main(), [runId], 50, true);
    const all = sum(reports, runId);
    expect((all.opened ?? 0) + (all["task.too_many"] ?? 0)).toBe(100);
    expect(all.opened).toBeGreaterThanOrEqual(MOST_CHILDREN);
    for (const { most } of reports) expect(most).toBeLessThanOrEqual(MOST_CHILDREN);
  });

  test("go no deeper than may be, and nothing is begun for what has no budget left", async () => {
    house.does = ({ input }) => (input.startsWith("go") ? delegate("1") : input === "1" ? delegate("2") : "done");
    await house.send("go");
    await house.take();
    await house.take();
    const [first, second] = await house.tasks();
    const spent = await house.send("spend", { chat: "8", peer: "8" });
    house.does = () => ({ ...(delegate("1") as object), usage: { inputTokens: 60_000, outputTokens: 60_000 } });
    const items = await store.queue.claim("node", 10, 60_000);
    for (const item of items) if ((item.payload as { runId: string }).runId === spent.runId) await house.take(item);
    const runs = [first?.run as string, second?.run as string, spent.runId];
    const config = main({ budget: { tokens_per_task: 100_000 } });
    const reports = await race(place.location, config, runs, 51);
    expect(sum(reports, second?.run as string)).toEqual({ "task.too_deep": 34 });
    expect(sum(reports, first?.run as string)).toEqual({ opened: MOST_CHILDREN - 1, "task.too_many": 34 - MOST_CHILDREN + 1 });
    expect(sum(reports, spent.runId)).toEqual({ "budget.exceeded": 34 });
    expect(Math.max(...(await house.tasks()).map(({ depth }) => depth))).toBe(2);
  });
});
