import pg from "pg";
import { serve, whenTold } from "../child.ts";
import type { Description, Effect, House, Probe, Resuming, Surroundings, System } from "./system.ts";

export type SystemName = "langgraph" | "mastra" | "guildhall";

export interface SideTask {
  readonly system: SystemName;
  readonly url: string;
  readonly house: House | null;
  readonly seat: number;
  readonly act:
    | { readonly do: "add"; readonly way: string; readonly writer: number; readonly times: number }
    | { readonly do: "count"; readonly way: string }
    | { readonly do: "probe" }
    | { readonly do: "nothing" }
    | { readonly do: "suspend"; readonly way: string; readonly runs: readonly string[] }
    | { readonly do: "effects"; readonly way: string }
    | { readonly do: "resume"; readonly way: string; readonly runs: readonly string[]; readonly by: string; readonly apartMs: number }
    | { readonly do: "work" | "take over"; readonly run: string; readonly by: string }
    | { readonly do: "results"; readonly run: string };
}

export type Ran = { readonly run: string; readonly times: number };
export type SideResult = null | number | string | readonly string[] | readonly Ran[] | readonly Probe[] | Readonly<Record<string, string>>;

interface Module {
  readonly description: Description;
  open(surroundings: Surroundings): Promise<System>;
}

const MODULES: Readonly<Record<SystemName, () => Promise<Module>>> = {
  langgraph: () => import("./langgraph.ts"),
  mastra: () => import("./mastra.ts"),
  guildhall: () => import("./guildhall.ts"),
};

const MOST_REFUSALS = 1_000;

await serve<SideTask, SideResult>(async (task) => {
  const effects = new pg.Pool({ connectionString: task.url, max: 2 });
  const effect = async (run: string, by: string): Promise<void> =>
    void (await effects.query("insert into effects (run, by) values ($1, $2)", [run, by]));
  const system = await (await MODULES[task.system]()).open({ ...task, effect });
  const result = await act(system, task.act, effect);
  await system.close();
  await effects.end();
  return result;
});

async function act(system: System, act: SideTask["act"], effect: Effect): Promise<SideResult> {
  switch (act.do) {
    case "add":
      await whenTold();
      return addAll(system, act.way, act.writer, act.times);
    case "count":
      return system.count(act.way);
    case "probe":
      return system.probeIsolation();
    case "nothing":
      return null;
    case "suspend":
      for (const run of act.runs) await resuming(system, act.way).suspend(run);
      return null;
    case "resume":
      return resumeAll(resuming(system, act.way), act.runs, act.by, effect, act.apartMs);
    case "effects":
      return (await resuming(system, act.way).effects?.()) ?? null;
    case "work":
      return system.work(act.run, act.by, whenTold);
    case "take over":
      return system.takeOver(act.run, act.by);
    case "results":
      return system.results(act.run);
  }
}

function resuming(system: System, way: string): Resuming {
  return system.resumes[way] as Resuming;
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
async function resumeAll(way: Resuming, runs: readonly string[], by: string, effect: Effect, apartMs: number): Promise<string[]> {
  await whenTold();
  const told = performance.now();
  const said: string[] = [];
  for (const [index, run] of runs.entries()) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, told + index * apartMs - performance.now())));
    said.push(await way.resume(run, by, effect).catch((error: Error) => `failed: ${error.message}`));
  }
  return said;
}
