import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { AgentRegistry } from "./registry.ts";

test("agents inherit model and personality, and their own replace them", () => {
  const agents = new AgentRegistry(
    configSchema.parse({
      model: "a/b",
      personality: "brief",
      agents: { main: {}, coder: { model: "c/d", personality: "exact", roles: ["engineer"] } },
    }),
  );
  expect(agents.list()).toEqual([
    { id: "main", model: "a/b", personality: "brief", isDefault: true, roles: [] },
    { id: "coder", model: "c/d", personality: "exact", isDefault: false, roles: ["engineer"] },
  ]);
});

test("an agent without any model has the offline one", () => {
  const agents = new AgentRegistry(configSchema.parse({}));
  expect(agents.get("main")).toEqual({ id: "main", model: "offline/demo", personality: null, isDefault: true, roles: [] });
  expect(agents.get("constructor")).toBeUndefined();
});
