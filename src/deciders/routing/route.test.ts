import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import type { Address } from "./address.ts";
import { route, routeNamed } from "./route.ts";

const address: Address = {
  platform: "telegram",
  account: "default",
  guild: null,
  chat: "-100",
  topic: null,
  chatType: "group",
  peer: "7",
  roles: [],
};
const config = (input: unknown) => configSchema.parse(input);

describe("without a rule that matches, the default agent answers", () => {
  test.each([
    [{}, "main", '"main" is the default agent'],
    [{ agents: { coder: {} } }, "coder", '"coder" is the only agent'],
    [{ agents: { main: {}, coder: { default: true } } }, "coder", '"coder" has `default: true`'],
    [{ agents: { coder: {}, main: {} } }, "main", '"main" is the default agent'],
  ])("%j → %s", (input, agent, because) => {
    expect(route(config(input), address)).toEqual({
      agent,
      tier: "default",
      binding: null,
      because: `no rule matches this address; ${because}`,
      trace: [],
    });
  });
});

test("unrouted: refuse switches the default off for channels, and not for the operator's own terminal", () => {
  const refusing = config({ unrouted: "refuse" });
  expect(route(refusing, address)).toMatchObject({ agent: null, tier: "none" });
  expect(route(refusing, { ...address, platform: "terminal" })).toMatchObject({ agent: "main", tier: "default" });
});

test("an agent that was named is taken if it exists; names of an object's insides do not", () => {
  expect(routeNamed(config({ agents: { coder: {} } }), "coder")).toMatchObject({ agent: "coder", tier: "named" });
  expect(routeNamed(config({ agents: { coder: {} } }), "codr")).toMatchObject({
    agent: null,
    because: expect.stringContaining('did you mean "coder"'),
  });
  expect(routeNamed(config({}), "constructor").agent).toBeNull();
});
