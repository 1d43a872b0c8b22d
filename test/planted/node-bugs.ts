import type { PlantedBug } from "./bugs.ts";

const NODES = "src/records/nodes/nodes.ts";
const tests = ["test/contract/nodes.test.ts"];

/** Who is there, who is not, and what becomes of what it held. */
export const NODE_BUGS: readonly PlantedBug[] = [
  {
    name: "that a node is lost is told by everybody who notices",
    file: NODES,
    from: "set state = 'lost' where id <> ${by} and ${IS_GONE} and state <> 'lost'",
    to: "set state = 'lost' where id <> ${by} and ${IS_GONE}",
    tests,
  },
  {
    name: "two nodes have one name",
    file: NODES,
    from: "home <> ${node.home} and not (${IS_GONE})`",
    to: "home <> ${node.home} and ${IS_GONE}`",
    tests,
  },
  {
    name: "whoever gets the name of a node that may only be cut off frees what it holds",
    file: NODES,
    from: "ended.filter(({ home }) => home === node.home)",
    to: "ended",
    tests,
  },
  {
    name: "a node that joins again frees its own work",
    file: NODES,
    from: "before.filter(({ id }) => id !== node.id)",
    to: "before",
    tests,
  },
  {
    name: "what was taken over before anybody noticed is not counted for a lost node",
    file: NODES,
    from: "(held.get(id) ?? 0) + taken",
    to: "held.get(id) ?? 0",
    tests,
  },
  {
    name: "a node that stops begins more",
    file: "src/edges/api/app.ts",
    from: "if (parts.isDraining?.() && ",
    to: "if (!parts.isDraining && ",
    tests: ["src/edges/api/app.test.ts"],
  },
  {
    name: "a turn of a node that stops waits for the end of its lease",
    file: "src/drivers/dispatch/dispatcher.ts",
    from: "await this.#options.queue.handBack(unfinished.map(({ item }) => item));",
    to: "",
    tests: ["test/scenarios/nodes.test.ts"],
    filter: "told to stop",
  },
];
