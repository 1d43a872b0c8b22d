import type { TelegramStandIn } from "../platforms/telegram.ts";
import { linesOf, wordsIn } from "./channels-check.ts";
import type { Play, Told, Witness } from "./turns-witness.ts";

/** Branches of each workflow. */
export const BRANCHES = 6;
/** Open tasks of one turn, and how deep they go: two below a message, two below each of them. */
export const MOST_CHILDREN = 2;
export const MOST_DEPTH = 2;
export const TREE_TASKS = MOST_CHILDREN + MOST_CHILDREN ** 2;
/** What everything for one message of the thrifty agent may take together; a whole tree would take more. */
export const MOST_TOKENS = 9_000;
const COST = { inputTokens: 400, outputTokens: 250 };
/** Longer than a lease: whoever is cut off meanwhile is overtaken. */
const SLOW_MS = 4_000;
const QUICK_MS = 250;

/** Where people write: in private, and in topics of a group. */
export const PLACES = [
  { peer: "1" },
  { peer: "2" },
  { peer: "3" },
  { peer: "7", group: "-1001", topic: "11" },
  { peer: "7", group: "-1001", topic: "12" },
] as const;
export type Place = (typeof PLACES)[number];
export const placeName = (place: Place): string => ("group" in place ? `${place.group}:${place.topic}` : place.peer);

/** Without tools that touch files: whoever has those belongs to one node. */
export function configFor(telegram: TelegramStandIn): object {
  const tools = ["look", "put", "fire", "delegate_task"];
  const subagents = { max_children: MOST_CHILDREN, max_depth: MOST_DEPTH };
  return {
    model: "outside/model",
    tools,
    limits: { turns: 16 },
    agents: {
      main: { default: true },
      worker: {},
      boss: { subagents },
      thrifty: { subagents, budget: { tokens_per_task: MOST_TOKENS } },
      topical: {},
    },
    bindings: [{ agent: "topical", telegram: "-1001", topic: "12" }],
    channels: {
      telegram: { ...telegram.account, token: `\${${TOKEN}}`, allow: ["*"], require_mention: false, stream: false, receipts: "none" },
    },
  };
}

const TOKEN = "CHAOS_TELEGRAM_TOKEN";
/** What is written in the file by its name only: the same text on every node. */
export const environmentFor = (telegram: TelegramStandIn): Record<string, string> => ({ [TOKEN]: String(telegram.account.token) });

/** One that plans, some that work side by side, one that gathers what they said. */
export function workflowOf(branches: number, maxParallel = branches): object {
  return {
    name: "chaos",
    keys: { items: { schema: { type: "array" } }, results: { policy: "append" } },
    steps: [
      { id: "plan", agent: "main", goal: `chaos {{input.name}} plan ${branches}`, writes: ["items"] },
      {
        ...{ id: "work", agent: "worker", needs: ["plan"], foreach: "items", max_parallel: maxParallel },
        ...{ reads: ["items"], writes: ["results"], goal: "chaos {{input.name}} item {{item}}" },
      },
      { id: "gather", agent: "main", needs: ["work"], reads: ["results"], writes: ["summary"], goal: "chaos {{input.name}} gather" },
    ],
    outputs: ["results", "summary"],
  };
}

type Call = Parameters<Play>[1];

export const play: Play = (asked, call) => {
  const { message, results } = asked;
  const [, what, branches] = /chaos \S+ (plan (\d+)|item \d+|gather)/.exec(message) ?? [];
  if (branches !== undefined) return { text: JSON.stringify(Array.from({ length: Number(branches) }, (_, index) => index)), calls: [] };
  if (what !== undefined) {
    if (results.length === 0) return { text: "first", calls: [call("look"), call("put"), call("fire")] };
    const doubts = results.flat().filter(({ text }) => text.startsWith("outcome unknown")).length;
    return { text: `${what} done, ${doubts} unknown`, calls: [] };
  }
  const tree = /(split|spend) (t\d+[/\d]*)/.exec(message);
  if (tree) return grow(tree[1] as string, tree[2] as string, results.length, call);
  if (message.includes("go g")) {
    if (results.length === 0) return { text: "first", calls: [call("put"), call("fire")] };
    return { text: `told ${results.flat().length}`, calls: [] };
  }
  return { text: wordsIn(message).flatMap(linesOf).join("\n"), calls: [] };
};

/** Asks for more than it may at every place, then for as much as it may. */
function grow(verb: string, name: string, round: number, call: Call): Told {
  const usage = verb === "spend" ? { usage: COST } : {};
  const depth = name.split("/").length - 1;
  const ask = (count: number): ReturnType<Call> => ({
    ...call("delegate_task"),
    args: JSON.stringify({ tasks: Array.from({ length: count }, (_, index) => ({ goal: `${verb} ${name}/${index}` })) }),
  });
  const own = depth > 0 ? [call("fire")] : [];
  if (round === 0) return { text: "first", calls: [...own, ask(depth === MOST_DEPTH ? 1 : MOST_CHILDREN + 1)], ...usage };
  if (round === 1 && depth < MOST_DEPTH) return { text: "then", calls: [ask(MOST_CHILDREN)], ...usage };
  return { text: `${name} grown`, calls: [], ...usage };
}

/** Some think for longer than a lease, the first time. */
export function thinking(witness: Witness, random: () => number): void {
  witness.thinkMs = ({ message }, times) => (message.includes("slowly") && times === 1 ? SLOW_MS : random() * QUICK_MS);
}
