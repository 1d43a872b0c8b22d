import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { routeNamed } from "./route.ts";

const agents = (input: unknown) => configSchema.parse(input).agents;

test("an agent that was named is taken if it exists; names of an object's insides do not", () => {
  expect(routeNamed(agents({ agents: { coder: {} } }), "coder")).toMatchObject({ agent: "coder", tier: "named" });
  expect(routeNamed(agents({ agents: { coder: {} } }), "codr")).toMatchObject({
    agent: null,
    because: expect.stringContaining('did you mean "coder"'),
  });
  expect(routeNamed(agents({}), "constructor").agent).toBeNull();
});
