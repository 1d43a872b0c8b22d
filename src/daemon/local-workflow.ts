import { existsSync, readFileSync } from "node:fs";
import { checkWorkflow, soundWorkflow } from "../deciders/planning/check-workflow.ts";
import { loadConditions } from "../deciders/planning/load-conditions.ts";
import type { AroundWorkflow } from "../deciders/planning/workflow-problems.ts";
import { homeOf, type Whereabouts } from "../settings/home.ts";
import { inspectSettings } from "../settings/load-settings.ts";
import { namedWorkflow, type PlacedProblem, readWorkflow } from "../settings/load-workflow.ts";
import { type ConfigExcerpt, configExcerpt } from "./config-excerpt.ts";

const PATH_LIKE = /[/\\]|\.ya?ml$|\.json$/i;

export interface CheckedProblem extends PlacedProblem {
  /** The line of the file; null where there is none to show. */
  readonly source: ConfigExcerpt | null;
}

export interface CheckedWorkflowFile {
  readonly ok: boolean;
  readonly file: string;
  readonly problems: readonly CheckedProblem[];
}

/** Everything that can be said about a workflow without a daemon. `what`: a path, or the name of a file in `<home>/workflows/`. */
export async function checkWorkflowFile(where: Whereabouts, what: string): Promise<CheckedWorkflowFile> {
  const file = fileOf(where, what);
  const read = await readWorkflow(file);
  const { workflow, problems } = checkWorkflow(read, await around(where));
  const lines = read.problems.some(({ code }) => code === "workflow.unreadable") ? [] : readFileSync(file, "utf8").split(/\r?\n/);
  return {
    ok: workflow !== null,
    file: read.file ?? file,
    problems: problems.map((problem) => {
      const { line, column } = problem;
      // Workflows hold no secrets: nothing is replaced in them.
      const source = line === null || column === null ? null : configExcerpt(lines, { line, column }, (said) => said, true);
      return { ...problem, source };
    }),
  };
}

/** As it is written, to be handed to a daemon. Throws `workflow.invalid` with places that the daemon could not tell. */
export async function readWorkflowFile(where: Whereabouts, what: string): Promise<Record<string, unknown>> {
  const read = await readWorkflow(fileOf(where, what));
  soundWorkflow(read, await around(where));
  return read.written as Record<string, unknown>;
}

function fileOf(where: Whereabouts, what: string): string {
  return existsSync(what) || PATH_LIKE.test(what) ? what : namedWorkflow(homeOf(where, process.env), what);
}

/** Where the config cannot be read nobody knows the agents, and none is called unknown. */
async function around(where: Whereabouts): Promise<AroundWorkflow> {
  const conditions = await loadConditions();
  const agents = agentsOf(where);
  return agents === null ? { conditions } : { agents, conditions };
}

function agentsOf(where: Whereabouts): string[] | null {
  try {
    const { settings } = inspectSettings(where, process.env);
    return settings && [...Object.keys(settings.config.agents), ...settings.quarantined.keys()];
  } catch {
    return null;
  }
}
