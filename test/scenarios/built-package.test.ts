import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LAUNCHER } from "../launcher.ts";
import { Home } from "./guildhall.ts";

test("the built package answers, takes up a large config in a process of its own, and carries the licences of what it contains", async () => {
  const home = new Home("agents: { main: { default: true } }\n");
  onTestFinished(() => home.remove());
  const answer = await home.run(["chat", "-m", "hello"]);
  expect(answer).toMatchObject({ code: 0, stdout: expect.stringContaining("Hello!") });

  const daemon = await home.start();
  const many = Array.from({ length: 700 }, (_, index) => `  agent-${index}: { personality: You are number ${index} of many. }\n`).join("");
  writeFileSync(join(home.path, "guildhall.yaml"), `agents:\n  main: { default: true }\n${many}`);
  await expect.poll(async () => (await daemon.fetch("/api/agents/agent-699")).status, { timeout: 15_000 }).toBe(200);

  const licenses = readFileSync(join(dirname(LAUNCHER), "../dist/licenses.txt"), "utf8");
  for (const name of ["zod", "hono", "yaml", "commander"]) expect(licenses).toMatch(new RegExp(`^## ${name} `, "m"));
}, 60_000);
