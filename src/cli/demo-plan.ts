/** One step of the demo's workflow: who does it, what it reads and writes in the shared memory, and what it waits for. */
export interface DemoStep {
  readonly id: string;
  readonly agent: string;
  readonly goal: string;
  readonly needs: readonly string[];
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

export const DEMO_NAME = "tea-shop";

/** No key, no network: the built-in model and three agents. What they may use of the shared memory, the workflow says. */
export const DEMO_CONFIG = `model: offline/demo
agents:
  researcher: { default: true, personality: You find facts and write them down., tools: [group:context] }
  writer: { personality: You write what others can use., tools: [group:context] }
  reviewer: { personality: You look for what is missing., tools: [group:context] }
`;

const step = (
  id: string,
  agent: string,
  goal: string,
  needs: readonly string[],
  reads: readonly string[],
  writes: readonly string[],
): DemoStep => ({ id, agent, goal, needs, reads, writes });

/** Two of them run side by side; the last one writes a second version of what another has read. */
export const DEMO_STEPS: readonly DemoStep[] = [
  step("research", "researcher", "Find out what a small {{input.shop}} needs to open", [], [], ["findings"]),
  step("draft", "writer", "Draft the opening plan of the {{input.shop}}", ["research"], ["findings"], ["draft"]),
  step("checklist", "reviewer", "List what a plan for a shop must not forget", ["research"], ["findings"], ["checklist"]),
  step("review", "reviewer", "Say what the draft is missing", ["draft", "checklist"], ["draft", "checklist"], ["review"]),
  step("revise", "writer", "Rewrite the draft as the review says", ["review"], ["draft", "review"], ["draft"]),
];

export const DEMO_INPUT = { shop: "tea shop" };

/** As it stands in the house of the demo, for whoever keeps that and looks around. */
export const DEMO_WORKFLOW = `# Run it with: guildhall workflow run ${DEMO_NAME} --input shop="tea shop"
name: ${DEMO_NAME}
description: Three agents plan the opening of a shop, through one shared memory.
keys:
  draft: { policy: last_write }
steps:
${DEMO_STEPS.map(stepText).join("\n")}
outputs: [draft]
`;

function stepText({ id, agent, goal, needs, reads, writes }: DemoStep): string {
  const lists = Object.entries({ needs, reads, writes }).filter(([, names]) => names.length > 0);
  return [`  - id: ${id}`, `agent: ${agent}`, `goal: "${goal}"`, ...lists.map(([name, names]) => `${name}: [${names.join(", ")}]`)].join(
    "\n    ",
  );
}

export function goalOf({ goal }: DemoStep): string {
  return goal.replaceAll("{{input.shop}}", DEMO_INPUT.shop);
}
