import type { Workflow } from "../../contract/workflows.ts";
import { type CompiledWorkflow, compileWorkflow, hasConditions } from "../../deciders/planning/compile.ts";
import { loadConditions } from "../../deciders/planning/load-conditions.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads } from "../../store/engine.ts";
import { readWorkflowFacts, type WorkflowFacts } from "./workflow-run-rows.ts";

export type KnownWorkflow = WorkflowFacts & { readonly compiled: CompiledWorkflow };

const REMEMBERED = 200;

/** What runs were started with, read and made ready once. Nothing of it ever changes, so that it may be remembered on every node. */
export class KnownWorkflows {
  readonly #known = new Map<string, KnownWorkflow>();
  /** Runs of one definition share what was made of it. */
  readonly #compiled = new Map<string, CompiledWorkflow>();

  async of(reads: Reads, id: string): Promise<KnownWorkflow> {
    const known = this.#known.get(id);
    if (known) return known;
    const facts = await readWorkflowFacts(reads, id);
    if (!facts) throw new Failure("request.not_found", `there is no run "${id}" of a workflow`);
    return this.#remember({ ...facts, compiled: await this.compile(facts.definition) });
  }

  /** Refuses what cannot be run. Best called before a transaction: conditions are loaded from a file the first time. */
  async compile(definition: Workflow): Promise<CompiledWorkflow> {
    const text = JSON.stringify(definition);
    const known = this.#compiled.get(text);
    if (known) return known;
    const compiled = compileWorkflow(definition, hasConditions(definition) ? await loadConditions() : null);
    put(this.#compiled, text, compiled);
    return compiled;
  }

  #remember(workflow: KnownWorkflow): KnownWorkflow {
    put(this.#known, workflow.id, workflow);
    return workflow;
  }
}

function put<Value>(map: Map<string, Value>, key: string, value: Value): void {
  if (map.size >= REMEMBERED) map.delete(map.keys().next().value as string);
  map.set(key, value);
}
