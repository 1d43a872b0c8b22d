import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Memory } from "../../src/records/memory/memory.ts";
import type { Standpoint } from "../../src/records/memory/standpoint.ts";
import { openStore } from "../../src/store/store.ts";
import { newId } from "../contract/sessions-place.ts";
import { Home } from "./guildhall.ts";

test("notes are listed, found, shown and forgotten from the command line and over HTTP, by those who may", async () => {
  const home = new Home("agents:\n  main: {default: true}\n  coder: {}\n");
  onTestFinished(() => home.remove());
  const daemon = await home.start();
  const store = await openStore(`sqlite:${join(home.path, "state.db")}`);
  onTestFinished(() => store.close());
  const memory = new Memory(store, newId);
  const save = (agent: string, text: string): Promise<{ id: string }> => {
    const place = { platform: "telegram", account: "default", chat: "7", topic: null };
    const from: Standpoint = { agent, scope: "agent", place, person: "telegram:7", persons: ["telegram:7"], heard: "private" };
    return store.transact("save", (tx) => memory.saveIn(tx, from, { text, pinned: false, labels: ["external"], run: null }), "locked");
  };
  const mine = await save("main", "The heron nests by the mill\u001b[31m");
  const theirs = await save("coder", "The heron eats frogs");
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await home.run(["memory", ...args]);
    return { code, stdout, stderr };
  };

  expect((await run("list")).stdout).toMatch(/frogs[\s\S]*mill/);
  expect(await run("search", "heron", "--agent", "main")).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/main · telegram:7 · telegram\/7 .* · external\n {2}The heron nests/),
  });
  expect((await run("show", mine.id)).stdout).not.toContain("\u001b[31m");
  expect(JSON.parse((await run("show", mine.id, "--json")).stdout)).toMatchObject({ id: mine.id, agent: "main", labels: ["external"] });
  expect(await run("search", "sparrow")).toMatchObject({ code: 1, stdout: "" });
  expect(await run("forget", mine.id)).toMatchObject({ code: 0, stdout: `forgotten: ${mine.id}\n` });
  expect(await run("show", mine.id)).toMatchObject({ code: 1, stderr: expect.stringContaining("there is no note") });

  const token = async (scope: string): Promise<string> =>
    JSON.parse((await home.run(["token", "create", "--scope", scope, "--json"])).stdout).token as string;
  const ask = async (bearer: string, method: string, path: string) => {
    const answer = await fetch(`${daemon.url}/api/memory${path}`, { method, headers: { authorization: `Bearer ${bearer}` } });
    return { status: answer.status, text: await answer.text() };
  };
  const [main, coder, reads, guest] = await Promise.all(["agent:main", "agent:coder", "read", "guest:g"].map(token));
  for (const path of ["?q=heron", "?agent=coder", "?agent=coder&q=frogs", ""])
    expect(await ask(main as string, "GET", path)).toEqual({ status: 200, text: '{"notes":[],"next":null}' });
  for (const method of ["GET", "DELETE"]) expect((await ask(main as string, method, `/${theirs.id}`)).status).toBe(404);
  expect((await ask(guest as string, "GET", "?q=heron")).status).toBe(403);
  expect((await ask(reads as string, "GET", "?q=heron")).text).toContain("frogs");
  expect((await ask(reads as string, "DELETE", `/${theirs.id}`)).status).toBe(403);
  expect((await ask(coder as string, "GET", `/${theirs.id}`)).text).toContain("frogs");
  expect(await ask(coder as string, "DELETE", `/${theirs.id}`)).toEqual({
    status: 200,
    text: JSON.stringify({ id: theirs.id, forgotten: true }),
  });
  expect((await ask(coder as string, "GET", `/${theirs.id}`)).status).toBe(404);
});
