import { afterEach, beforeEach, expect, test } from "vitest";
import type { Proposal } from "../../src/contract/proposals.ts";
import { type Ended, Home, type RunningDaemon } from "./guildhall.ts";

let home: Home;
let daemon: RunningDaemon;
const tokens = new Map<string, string>();

beforeEach(async () => {
  home = new Home("pools:\n  plans: { readers: [bob], writers: [alice] }\n");
  daemon = await home.start();
  for (const name of ["alice", "bob"])
    tokens.set(name, JSON.parse((await home.run(["token", "create", "--scope", `guest:${name}`, "--json"])).stdout).token);
});
afterEach(() => home.remove());

const as = (name: string, ...args: string[]): Promise<Ended> =>
  home.run(["agree", ...args], { env: { ...process.env, GUILDHALL_TOKEN: tokens.get(name) } });
const read = async (id: string): Promise<Proposal> => (await (await daemon.fetch(`/api/proposals/${id}`)).json()) as Proposal;

test("a proposal is made, voted on by its beginning, shown and listed from the command line", async () => {
  const made = await as(
    "alice",
    "propose",
    "Ship on Monday?",
    "--elector",
    "alice",
    "bob",
    "--write",
    "plans/day=Monday",
    "--pin",
    "plans/stop@none",
  );
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-z]{20}\n$/) });
  const id = made.stdout.trim();
  expect((await as("alice", "vote", id, "yes")).stdout).toMatch(/open until.*yes {2}alice\n {2}– {2}bob.*writes plans\/day = "Monday"/s);
  expect((await as("bob", "vote", id.slice(0, 16), "yes")).stdout).toContain("committed: 2 yes and 0 no of 2, 2 yes needed");
  expect(await (await daemon.fetch("/api/pools/plans/entries/day")).json()).toMatchObject({ value: "Monday", author: { agent: "alice" } });
  expect(JSON.parse((await as("bob", "show", id, "--json")).stdout)).toMatchObject({ state: "committed", rule: "all" });
  expect((await as("bob", "list", "--state", "committed")).stdout).toContain("Ship on Monday?");
  expect((await as("bob", "list", "--state", "open")).stdout).toBe("");
});

test("refusals say why, and wrong usage is told from them", async () => {
  expect(await as("bob", "propose", "x", "--elector", "bob", "--write", "plans/day=1")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("[request.forbidden]"),
  });
  expect(await as("bob", "show", "0".repeat(20))).toMatchObject({ code: 1, stderr: expect.stringContaining("[request.not_found]") });
  expect(await as("bob", "propose", "x", "--elector", "bob", "--rule", "most")).toMatchObject({ code: 2 });
  expect(await as("bob", "propose", "x", "--elector", "bob", "--write", "nothing")).toMatchObject({ code: 2 });
  expect(await as("bob", "vote", "0".repeat(20), "maybe")).toMatchObject({ code: 2 });
});

test("A4 nobody votes: the daemon decides it soon after its deadline, also if it was down at that moment", async () => {
  const propose = async (): Promise<string> =>
    (await as("alice", "propose", "x", "--elector", "bob", "--deadline", "500ms", "--write", "plans/day=never")).stdout.trim();
  const first = await propose();
  await expect.poll(async () => (await read(first)).state, { timeout: 15_000 }).toBe("aborted");
  const second = await propose();
  await daemon.kill("SIGKILL");
  daemon = await home.start();
  await expect.poll(async () => (await read(second)).state, { timeout: 15_000 }).toBe("aborted");
  expect((await daemon.fetch("/api/pools/plans/entries/day")).status).toBe(404);
});
