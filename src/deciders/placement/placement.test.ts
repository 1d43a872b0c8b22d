import { expect, test } from "vitest";
import { absenceOf, missingNodes, movesHere, type PlacedAgent, placeOf } from "./placement.ts";

const A = { name: "a", home: "home-a", labels: ["gpu"] };
const B = { name: "b", home: "home-b", labels: [] };
const AT_A = { node: "a", home: "home-a" };
const agent = (nodes: readonly string[] | null, touchesFiles = true): PlacedAgent => ({ nodes, touchesFiles });

test("whoever touches files runs where they are, and the first to take a turn decides where that is", () => {
  expect(placeOf(agent(null), undefined, B)).toBe("unsettled");
  expect(placeOf(agent(null), AT_A, A)).toBe("here");
  expect(placeOf(agent(null), AT_A, B)).toBe("elsewhere");
});

test("the home has the files, whatever its node is called", () => {
  expect(placeOf(agent(null), { node: "before", home: "home-a" }, A)).toBe("here");
  expect(placeOf(agent(null), { node: "b", home: "home-a" }, B)).toBe("elsewhere");
});

test("whoever touches none runs anywhere", () => {
  for (const home of [undefined, AT_A]) expect(placeOf(agent(null, false), home, B)).toBe("here");
});

test("the config's word counts before the home, by name or label, also for whoever touches none", () => {
  expect(placeOf(agent(["b"]), AT_A, A)).toBe("elsewhere");
  expect(placeOf(agent(["b"]), AT_A, B)).toBe("here");
  expect(placeOf(agent(["gpu"]), { node: "b", home: "home-b" }, A)).toBe("here");
  expect(placeOf(agent(["gpu"], false), undefined, B)).toBe("elsewhere");
  expect(placeOf(agent(["gpu", "b"], false), undefined, B)).toBe("here");
  expect(placeOf(agent(["gpu"]), undefined, A)).toBe("unsettled");
});

test("a star is every node, and makes none of them a home", () => {
  for (const home of [undefined, AT_A]) for (const node of [A, B]) expect(placeOf(agent(["*"]), home, node)).toBe("here");
});

test("the home follows the config to a node that it names, and stays where one is named that has it", () => {
  expect(movesHere(agent(["b"]), AT_A, B, [A, B])).toBe(true);
  expect(movesHere(agent(["b"]), AT_A, A, [A, B])).toBe(false);
  expect(movesHere(agent(["b", "gpu"]), AT_A, B, [A, B])).toBe(false);
  expect(movesHere(agent(["a", "b"]), AT_A, B, [B])).toBe(false);
  expect(movesHere(agent(["b", "gpu"]), AT_A, B, [B])).toBe(true);
  for (const nodes of [null, ["*"]]) expect(movesHere(agent(nodes), AT_A, B, [A, B])).toBe(false);
});

test("it is told why nobody takes its turns", () => {
  expect(absenceOf(agent(null), AT_A, [B])).toBe("its turns wait: its files are on the node a, which is not there");
  expect(absenceOf(agent(["gpu", "c"]), undefined, [B])).toBe("its turns wait: no node that is there has the name or label gpu or c");
  expect(absenceOf(agent(["gpu"], false), undefined, [B])).not.toBeNull();
});

test("nothing is said against an agent that somebody takes turns of, or where nobody is there at all", () => {
  expect(absenceOf(agent(null), AT_A, [{ ...A, name: "renamed" }])).toBeNull();
  expect(absenceOf(agent(null, false), AT_A, [B])).toBeNull();
  expect(absenceOf(agent(null), undefined, [B])).toBeNull();
  expect(absenceOf(agent(["*"]), AT_A, [B])).toBeNull();
  expect(absenceOf(agent(["b"]), AT_A, [B])).toBeNull();
  expect(absenceOf(agent(["gpu"]), AT_A, [])).toBeNull();
});

test("what is missing is told once for all whom it concerns, also a name beside which another is there", () => {
  const all = [
    { id: "one", ...agent(null) },
    { id: "two", ...agent(null) },
    { id: "three", ...agent(["b", "c", "*"]) },
    { id: "four", ...agent(["b", "c"]) },
    { id: "five", ...agent(["c"]) },
    { id: "six", ...agent(null, false) },
  ];
  const homes = new Map([
    ["one", AT_A],
    ["two", AT_A],
  ]);
  const missing = (alive: readonly (typeof A)[]) => missingNodes(all, (one) => absenceOf(one, homes.get(one.id), alive), alive);
  expect(missing([{ ...B, labels: [] }])).toEqual([
    { problem: "its turns wait: its files are on the node a, which is not there", agents: ["one", "two"] },
    { problem: "no node that is there has the name or label c", agents: ["three", "four"] },
    { problem: "its turns wait: no node that is there has the name or label c", agents: ["five"] },
  ]);
  expect(missing([])).toEqual([]);
});
