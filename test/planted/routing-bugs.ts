import type { PlantedBug } from "./bugs.ts";

const RULE = "src/deciders/routing/rule.ts";
const TREE = "src/deciders/routing/rule-tree.ts";
const table = { tests: ["test/routing-table.test.ts"] };
const oracle = { tests: ["test/routing-properties.test.ts"] };

/** Bugs in routing. */
export const ROUTING_BUGS: readonly PlantedBug[] = [
  {
    name: "routing: a sender's rule stands before the chat's",
    file: RULE,
    from: '["topic", "chat", "peer", "guild+type"',
    to: '["topic", "peer", "chat", "guild+type"',
    ...table,
  },
  {
    name: 'routing: "*" counts as a field that is named',
    file: RULE,
    from: "return single.filter((field) => named(field) !== null).length",
    to: "return single.filter((field) => field !== null).length",
    ...table,
  },
  {
    name: "routing: roles must all be had",
    file: RULE,
    from: "for (const role of roles) if (wanted.includes(role)) return true;\n  return false;",
    to: "return wanted.every((role) => roles.includes(role));",
    ...oracle,
  },
  {
    name: "routing: the first rule that fits wins where several roles lead to one",
    file: TREE,
    from: "if (below !== undefined) first = firstBelow(below, address, first);\n    }\n    if (node.present !== null && address.roles",
    to: "if (below !== undefined) first ??= firstBelow(below, address, first);\n    }\n    if (node.present !== null && address.roles",
    ...oracle,
  },
  {
    name: "routing: a rule that names the field hides those that leave it open",
    file: TREE,
    from: "return node.open === null ? first : firstBelow(node.open, address, first);",
    to: "return node.open === null || first !== null ? first : firstBelow(node.open, address, first);",
    ...oracle,
  },
  {
    name: "routing: a person can be named like another's id",
    file: "src/deciders/routing/session-key.ts",
    from: "return name === null ? `${withoutColon(platform)}:${peer}` : withoutColon(name);",
    to: "return name === null ? `${withoutColon(platform)}:${peer}` : name;",
    tests: ["test/session-keys.test.ts"],
  },
  {
    name: "routing: rules that win somewhere are called never used",
    file: "src/deciders/routing/binding-problems.ts",
    from: "if (winners.has(rule)) return [];",
    to: "if (winners.size === 1 && winners.has(rule)) return [];",
    tests: ["test/routing-problems.test.ts"],
  },
  {
    name: "routing: a short trace forgets the winner",
    file: "src/deciders/routing/router.ts",
    from: "const told = new Set(winner ? [winner] : []);",
    to: "const told = new Set<Rule>();",
    ...oracle,
  },
  {
    name: "routing: the trace is kept twice",
    file: "src/acts/admit-message.ts",
    from: "data: { agent, tier, binding, because, sessionKey, ...(revision === undefined ? {} : { revision }) },",
    to: "data: { ...decision, sessionKey },",
    tests: ["test/acts.test.ts"],
  },
];
