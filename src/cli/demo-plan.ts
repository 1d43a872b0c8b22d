/** One piece of work of the demo: who does it, what it reads and writes in the shared memory, and what it waits for. */
export interface DemoStep {
  readonly id: string;
  readonly agent: string;
  readonly goal: string;
  readonly needs: readonly string[];
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

/** Everybody has it; agents need not name it. */
export const DEMO_POOL = "commons";

/** No key, no network: the built-in model, three agents, one pool that all of them may use. */
export const DEMO_CONFIG = `model: offline/demo
agents:
  researcher: { default: true, personality: You find facts and write them down., tools: [group:context] }
  writer: { personality: You write what others can use., tools: [group:context] }
  reviewer: { personality: You look for what is missing., tools: [group:context] }
pools:
  ${DEMO_POOL}:
    readers: ["*"]
    writers: ["*"]
    keys: { draft: { policy: last_write } }
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
  step("research", "researcher", "Find out what a small tea shop needs to open", [], [], ["findings"]),
  step("draft", "writer", "Draft the opening plan of the tea shop", ["research"], ["findings"], ["draft"]),
  step("checklist", "reviewer", "List what a plan for a shop must not forget", ["research"], ["findings"], ["checklist"]),
  step("review", "reviewer", "Say what the draft is missing", ["draft", "checklist"], ["draft", "checklist"], ["review"]),
  step("revise", "writer", "Rewrite the draft as the review says", ["review"], ["draft", "review"], ["draft"]),
];

/** As an agent is told of it. */
export function demoMessage({ goal, reads, writes }: DemoStep): string {
  return [`goal: ${goal}`, ...(reads.length === 0 ? [] : [`reads: ${reads.join(", ")}`]), `writes: ${writes.join(", ")}`].join("\n");
}
