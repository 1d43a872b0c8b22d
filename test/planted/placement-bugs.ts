import type { PlantedBug } from "./bugs.ts";

const HERE = "src/drivers/dispatch/agents-here.ts";
const HOMES = "src/records/nodes/agent-homes.ts";
const PLACEMENT = "src/deciders/placement/placement.ts";
const homes = { tests: ["test/contract/agent-homes.test.ts"] };

/** Bugs in where turns are taken: an agent's files must never be on two nodes. */
export const PLACEMENT_BUGS: readonly PlantedBug[] = [
  {
    name: "the home of an agent is whoever says so last",
    file: HOMES,
    from: "now_ms()) on conflict (agent) do nothing`",
    to: "now_ms()) on conflict (agent) do update set node = excluded.node, home = excluded.home`",
    ...homes,
  },
  {
    name: "a turn of another node's agent is taken by whoever has claimed it",
    file: HERE,
    from: "if (item.tenant !== null && !(await this.isHere(item.tenant))) await",
    to: "if (item.tenant === '') await",
    ...homes,
  },
  {
    name: "a new config is taken up with the homes of the old one",
    file: HERE,
    from: "    while (this.isBehind) await this.#look();\n",
    to: "",
    ...homes,
  },
  {
    name: "a place is kept for an agent whose files are on another node",
    file: "src/drivers/dispatch/dispatcher.ts",
    from: "without.includes(tenant) || this.#elsewhere().has(tenant)) return null",
    to: "without.includes(tenant)) return null",
    ...homes,
  },
  {
    name: "a node under a name of before takes the files of one that is there still",
    file: HOMES,
    from: "\n        and not exists (select 1 from nodes where nodes.home = agent_homes.home and not (${IS_GONE})) returning agent`",
    to: " returning agent`",
    ...homes,
  },
  {
    name: "the home stays behind when the config names another node",
    file: PLACEMENT,
    from: "  return !isNamed(nodes, last);",
    to: "  return last.name === here.name;",
    tests: ["src/deciders/placement/placement.test.ts"],
  },
  {
    name: "a program that serves an agent is no reason to stay with its files",
    file: "src/deciders/policy/touches-files.ts",
    from: '  if (Object.values(own.mcp).some((server) => "command" in server)) return true;\n',
    to: "",
    tests: ["src/deciders/policy/touches-files.test.ts"],
  },
];
