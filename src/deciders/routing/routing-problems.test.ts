import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { routingProblems } from "./routing-problems.ts";

const config = configSchema.parse({
  agents: { main: {}, nap: { state: "paused" } },
  bindings: [
    { agent: "main", telegram: "1" },
    { agent: "nap", telegram: "1" },
  ],
});
const settings = {
  config,
  configFile: "/home/guildhall.yaml",
  quarantined: new Map([["main", []]]),
  originOf: (path: readonly (string | number)[]) => ({ line: path[0] === "bindings" ? 21 + Number(path[1]) : 3, column: 5 }),
};

test("problems of bindings stand where the binding does, those of the default where its section does", () => {
  expect(routingProblems(settings).map(({ file, line, column, path, code }) => [`${file}:${line}:${column}`, path, code])).toEqual([
    ["/home/guildhall.yaml:21:5", "bindings.0", "binding.agent_quarantined"],
    ["/home/guildhall.yaml:22:5", "bindings.1", "binding.duplicate"],
    ["/home/guildhall.yaml:22:5", "bindings.1", "binding.agent_paused"],
    ["/home/guildhall.yaml:3:5", "agents.main", "binding.agent_quarantined"],
  ]);
});

test("without a file there is nothing to correct", () => {
  expect(routingProblems({ ...settings, configFile: null })).toEqual([]);
});
