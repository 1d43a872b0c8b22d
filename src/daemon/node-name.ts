import type { z } from "zod";
import { nodeLabels, nodeName } from "../contract/nodes.ts";
import { Failure } from "../kernel/failure.ts";

export interface NamedNode {
  readonly name: string;
  readonly labels: readonly string[];
}

interface Given {
  readonly name?: string | undefined;
  readonly labels?: readonly string[] | undefined;
}

const LONGEST = 63;

/**
 * What the others know this node by: what was said at the start, else in the environment, else the machine's name. `own`: for one that is there
 * besides the node of this machine, as that of a chat, and is nobody's to name.
 */
export function nameNode(given: Given, environment: NodeJS.ProcessEnv, machine: string, own: string | null): NamedNode {
  const { GUILDHALL_NODE_NAME: named, GUILDHALL_NODE_LABELS: labelled } = environment;
  if (own !== null && given.name === undefined) return { name: `${fitting(machine, LONGEST - own.length - 1)}-${own}`, labels: [] };
  const [name, from] =
    given.name !== undefined ? [given.name, "--name"] : named ? [named, "GUILDHALL_NODE_NAME"] : [fitting(machine, LONGEST), ""];
  const labels = given.labels ?? (labelled ? labelled.split(",").map((label) => label.trim()) : []);
  return {
    name: checked(nodeName, name, from),
    labels: [...new Set(checked(nodeLabels, labels, given.labels ? "--labels" : "GUILDHALL_NODE_LABELS"))],
  };
}

function checked<T>(schema: z.ZodType<T>, value: unknown, from: string): T {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  throw new Failure("usage.wrong", `${from}: ${error.issues[0]?.message}`, { hint: `Correct ${from} and start again.` });
}

/** A machine may be called anything. */
function fitting(machine: string, length: number): string {
  const name = machine.replace(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return (name || "node").slice(0, length);
}
