import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { LAUNCHER } from "../launcher.ts";
import { Home } from "./guildhall.ts";

/** Nothing of the machine is used: no home, no key, no network beyond this process. */
const folder = mkdtempSync(join(tmpdir(), "guildhall-demo-test-"));
const home = new Home();
afterAll(async () => {
  await home.remove();
  rmSync(folder, { recursive: true, force: true });
});

const houses = (): string[] => readdirSync(folder).filter((name) => name.startsWith("guildhall-demo-"));
const env = { PATH: process.env.PATH, HOME: folder, TMPDIR: folder };

test("the demo runs without a key in under a minute: agents build on each other's work, and it is known who wrote what", async () => {
  const began = performance.now();
  const { code, stdout } = await home.run(["demo", "--json"], { env });
  expect(performance.now() - began).toBeLessThan(60_000);
  expect(code).toBe(0);
  const { ok, steps, entries, blame } = JSON.parse(stdout);
  expect(ok).toBe(true);
  expect(steps.map(({ id, status, wrote }: { id: string; status: string; wrote: string[] }) => [id, status, ...wrote])).toEqual([
    ["research", "completed", "findings@1"],
    ["draft", "completed", "draft@1"],
    ["checklist", "completed", "checklist@1"],
    ["review", "completed", "review@1"],
    ["revise", "completed", "draft@2"],
  ]);
  expect(new Set(entries.map(({ author }: { author: { agent: string } }) => author.agent))).toEqual(
    new Set(["researcher", "writer", "reviewer"]),
  );
  const made = (version: string) =>
    blame[version].derivedFrom.map(({ key, version: from }: { key: string; version: number }) => `${key}@${from}`);
  expect(made("draft@1")).toEqual(["findings@1"]);
  expect(made("draft@2").sort()).toEqual(["draft@1", "review@1"]);
  expect(houses()).toEqual([]);
}, 90_000);

test("whoever interrupts it leaves nothing behind, early or late", async () => {
  for (const moment of ["made its house", "begun to show"] as const) {
    const child = spawn(process.execPath, [LAUNCHER, "demo"], { env, stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "close");
    try {
      if (moment === "made its house") await vi.waitFor(() => expect(houses()).toHaveLength(1), { timeout: 20_000, interval: 5 });
      else await once(child.stdout, "data");
      child.kill("SIGINT");
      expect([moment, ...(await ended)]).toEqual([moment, 130, null]);
    } finally {
      child.kill("SIGKILL");
    }
    expect(houses()).toEqual([]);
  }
}, 90_000);

test("its lines fit into a terminal of eighty columns", async () => {
  const { stdout } = await home.run(["demo"], { env });
  expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
}, 90_000);

test("for a reader that is no terminal it prints plain lines, and keeps its house where that is wanted", async () => {
  const { code, stdout } = await home.run(["demo", "--keep"], { env });
  expect(code).toBe(0);
  expect(stdout).not.toContain("\x1b");
  expect(stdout).toContain("every answer is scripted (offline/demo)");
  expect(stdout).toMatch(/✔ revise +wrote draft@2/);
  expect(stdout).toContain("Try next");
  expect(stdout.split("\n").filter((line) => line.length > 80 && !line.includes("GUILDHALL_HOME"))).toEqual([]);
  const [kept] = houses();
  expect(existsSync(join(folder, kept as string, "state.db"))).toBe(true);
}, 90_000);
