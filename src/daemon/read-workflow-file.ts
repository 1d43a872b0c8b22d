import { soundWorkflow } from "../deciders/planning/check-workflow.ts";
import { hasConditions } from "../deciders/planning/compile.ts";
import { loadConditions } from "../deciders/planning/load-conditions.ts";
import type { Whereabouts } from "../settings/home.ts";
import { loadSettings } from "../settings/load-settings.ts";
import { readWorkflow } from "../settings/load-workflow.ts";

/**
 * A workflow from anywhere, as a program hands it in. Checked here, where its lines are known: a daemon that is given the value can only name
 * the field.
 */
export async function readWorkflowFile(where: Whereabouts, path: string): Promise<Record<string, unknown>> {
  const { config, quarantined } = loadSettings(where, process.env);
  const read = await readWorkflow(path);
  const conditions = read.workflow && hasConditions(read.workflow) ? await loadConditions() : null;
  soundWorkflow(read, { agents: [...Object.keys(config.agents), ...quarantined.keys()], conditions });
  return read.written as Record<string, unknown>;
}
