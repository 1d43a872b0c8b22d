import { expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { settingsWithoutFile } from "../../settings/load-settings.ts";
import { Policy } from "./policy.ts";
import { touchesFiles } from "./touches-files.ts";

const touches = (agent: object, more: object = {}): boolean => {
  const config = configSchema.parse({ ...more, agents: { main: {}, one: agent } });
  return touchesFiles(new Policy(settingsWithoutFile(config, "")), "one");
};
const CHANNEL = { channels: { telegram: { token: "t", allow: ["*"] } } };

test.each(["file_read", "file_write", "file_edit", "file_search", "file_list", "terminal", "process", "group:fs"])(
  "an agent with %s touches files",
  (tool) => {
    expect(touches({ tools: [tool] })).toBe(true);
  },
);

test("asking a person first is touching too", () => {
  expect(touches({ tools: { allow: ["terminal"], ask: ["terminal"] } })).toBe(true);
});

test("everything is allowed where nothing is said, and files are part of it", () => {
  expect(touches({})).toBe(true);
  expect(touches({}, { tools: { deny: ["group:fs", "group:runtime"] } })).toBe(false);
  expect(touches({ tools: "coding" })).toBe(true);
});

test("what is kept in the store is no file: memory, pools, mail, tasks, the web", () => {
  const tools = ["group:memory", "group:context", "group:delegation", "group:coordination", "group:web", "schedule", "skill_read", "todo"];
  expect(touches({ tools }, CHANNEL)).toBe(false);
  expect(touches({ tools: "minimal" }, CHANNEL)).toBe(false);
});

test("files that people send are in the workspace of whoever may send them on", () => {
  expect(touches({ tools: "messaging" }, CHANNEL)).toBe(true);
  expect(touches({ tools: "messaging" })).toBe(false);
  expect(touches({ tools: { profile: "messaging", deny: ["message_send"] } }, CHANNEL)).toBe(false);
});

test("a server that is a program has the agent's folder, one at an address does not", () => {
  expect(touches({ tools: "minimal", mcp: { files: { command: "server" } } })).toBe(true);
  expect(touches({ tools: "minimal", mcp: { far: { url: "http://127.0.0.1:9/mcp" } } })).toBe(false);
});

test("whoever may do nothing, or is not there, touches none", () => {
  expect(touches({ state: "paused" })).toBe(false);
  expect(touchesFiles(new Policy(settingsWithoutFile(configSchema.parse({}), "")), "nobody")).toBe(false);
});
