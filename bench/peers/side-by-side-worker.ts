import pg from "pg";
import { serve, whenTold } from "../child.ts";
import type { Description, Probe, Surroundings, System } from "./system.ts";

export type SystemName = "langgraph" | "mastra";

export interface SideTask {
  readonly system: SystemName;
  readonly url: string;
  readonly act:
    | { readonly do: "add"; readonly way: string; readonly writer: number; readonly times: number }
    | { readonly do: "count"; readonly way: string }
    | { readonly do: "probe" }
    | { readonly do: "suspend"; readonly runs: readonly string[] }
    | { readonly do: "resume"; readonly runs: readonly string[]; readonly by: string; readonly apartMs: number }
    | { readonly do: "work" | "take over"; readonly run: string; readonly by: string }
    | { readonly do: "results"; readonly run: string };
}

export type SideResult = null | number | string | readonly string[] | readonly Probe[] | Readonly<Record<string, string>>;

interface Module {
  readonly description: Description;
  open(surroundings: Surroundings): Promise<System>;
}

const MODULES: Readonly<Record<SystemName, () => Promise<Module>>> = {
  langgraph: () => import("./langgraph.ts"),
  mastra: () => import("./mastra.ts"),
};

const MOST_REFUSALS = 1_000;

await serve<SideTask, SideResult>(async (task) => {
  const effects = new pg.Pool({ connectionString: task.url, max: 2 });
  const effect = async (run: string, by: string): Promise<void> =>
    void (await effects.query("insert into effects (run, by) values ($1, $2)", [run, by]));
  const system = await (await MODULES[task.system]()).open({ url: task.url, effect });
  const result = await act(system, task.act);
  await system.close();
  await effects.end();
  return result;
});

async function act(system: System, act: SideTask["act"]): Promise<SideResult> {
  switch (act.do) {
    case "add":
      await whenTold();
      return addAll(system, act.way, act.writer, act.times);
    case "count":
      return system.count(act.way);
    case "probe":
      return system.probeIsolation();
    case "suspend":
      for (const run of act.runs) await system.suspend(run);
      return null;
    case "resume":
      return resumeAll(system, act.runs, act.by, act.apartMs);
    case "work":
      return system.work(act.run, act.by, whenTold);
    case "take over":
      return system.takeOver(act.run, act.by);
    case "results":
      return system.results(act.run);
  }
}

/** Whoever is refused tries again, as a caller would who was told. Answers how often that was. */
async function addAll(system: System, way: string, writer: number, times: number): Promise<number> {
  let refused = 0;
  for (let index = 0; index < times; ) {
    try {
      await system.add(way, writer, index);
      index++;
    } catch (error) {
      if (++refused > MOST_REFUSALS) throw error;
    }
  }
  return refused;
}

/** Both processes are told at once and keep to the same timetable from then on, so that they meet at every run. */
async function resumeAll(system: System, runs: readonly string[], by: string, apartMs: number): Promise<string[]> {
  await whenTold();
  const told = performance.now();
  const said: string[] = [];
  for (const [index, run] of runs.entries()) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, told + index * apartMs - performance.now())));
    said.push(await system.resume(run, by).catch((error: Error) => `failed: ${error.message}`));
  }
  return said;
}
