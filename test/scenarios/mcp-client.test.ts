import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { nameOf } from "../../src/abilities/tools/mcp/tool-names.ts";
import { createGuildhall } from "../../src/library/index.ts";
import { loadSettings } from "../../src/settings/load-settings.ts";
import { freePort } from "../free-port.ts";
import { sqlitePlace } from "../stores.ts";
import { McpHouse } from "./mcp-house.ts";

const PACKAGES = new URL("../../node_modules/@modelcontextprotocol/", import.meta.url).pathname;
const reference = (name: string, ...args: string[]): object => ({
  command: process.execPath,
  args: [join(PACKAGES, name, "dist/index.js"), ...args],
});

let house: McpHouse;
beforeEach(async () => {
  house = await McpHouse.open(sqlitePlace(), { patienceMs: 8_000 });
});
afterEach(() => house.remove());

describe("the official reference servers", () => {
  test("filesystem: reads and writes in the folder it was given, and refuses what is outside", async () => {
    const folder = join(realpathSync(house.home), "shared");
    mkdirSync(folder);
    writeFileSync(join(folder, "a.txt"), "what stands in it");
    house.configure({ files: reference("server-filesystem", folder) });
    const tools = await house.tools();
    expect([...tools.keys()]).toContain("mcp__files__read_text_file");
    expect(tools.get("mcp__files__read_text_file")).toMatchObject({ effect: "pure", consequential: false, egress: true });
    expect(tools.get("mcp__files__write_file")).toMatchObject({ consequential: true });
    const read = await house.call(tools.get("mcp__files__read_text_file"), { path: join(folder, "a.txt") });
    expect(read).toMatchObject({ output: expect.stringContaining("what stands in it"), labels: ["external"] });
    await house.call(tools.get("mcp__files__write_file"), { path: join(folder, "b.txt"), content: "new" });
    expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("new");
    expect(await house.call(tools.get("mcp__files__read_text_file"), { path: "/etc/passwd" })).toMatchObject({ failed: true });
  });

  test("memory: keeps a graph where its variable says", async () => {
    const file = join(house.home, "graph.jsonl");
    house.configure({ memory: { ...reference("server-memory"), env: { MEMORY_FILE_PATH: file }, trusted: true } });
    const tools = await house.tools();
    const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];
    expect(await house.call(tools.get("mcp__memory__create_entities"), { entities })).toMatchObject({ labels: [] });
    expect(readFileSync(file, "utf8")).toContain("writes programs");
    const found = await house.call(tools.get("mcp__memory__search_nodes"), { query: "Ada" });
    expect(JSON.stringify(found.output)).toContain("writes programs");
  });

  test("everything: text, images, structured answers, progress, and arguments that do not fit", async () => {
    house.configure({ all: reference("server-everything", "stdio") });
    const tools = await house.tools();
    expect(await house.call(tools.get("mcp__all__echo"), { message: "hello" })).toMatchObject({ output: "Echo: hello" });
    expect(await house.call(tools.get("mcp__all__get-sum"), { a: 2, b: 3 })).toMatchObject({ output: expect.stringContaining("5") });
    const image = await house.call(tools.get("mcp__all__get-tiny-image"));
    expect(image.images).toEqual([{ mediaType: "image/png", data: expect.stringMatching(/^iVBOR/) }]);
    const structured = await house.call(tools.get("mcp__all__get-structured-content"), { location: "New York" });
    expect(JSON.stringify(structured.output)).toContain("temperature");
    await expect(house.call(tools.get("mcp__all__get-sum"), { a: "two", b: 3 })).rejects.toMatchObject({ code: "tool.bad_arguments" });
    // The list has not changed by itself.
    expect((await house.tools()).size).toBe(tools.size);
  });

  test("everything, over streamable HTTP, also after the server was restarted and has forgotten the session", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    let server = await everythingAt(url, port);
    try {
      house.configure({ all: { url } });
      const tools = await house.tools();
      expect(await house.call(tools.get("mcp__all__echo"), { message: "hello" })).toMatchObject({ output: "Echo: hello" });
      server.kill("SIGKILL");
      server = await everythingAt(url, port);
      await expect
        .poll(async () => (await house.call(tools.get("mcp__all__echo"), { message: "again" })).output, { timeout: 15_000 })
        .toBe("Echo: again");
    } finally {
      server.kill("SIGKILL");
    }
  });
});

test("a server that speaks only the protocol without sessions is spoken to in that way", async () => {
  const asked: string[] = [];
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "modern", version: "1" }, { capabilities: { tools: {} } });
    server.registerTool("add", { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => ({
      content: [{ type: "text", text: String(a + b) }],
    }));
    return server;
  });
  const app = serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      asked.push(request.headers.get("mcp-method") ?? "");
      return handler.fetch(request);
    },
  });
  try {
    await once(app, "listening");
    house.configure({ modern: { url: `http://127.0.0.1:${(app.address() as AddressInfo).port}/mcp` } });
    const tools = await house.tools();
    expect(await house.call(tools.get("mcp__modern__add"), { a: 2, b: 3 })).toMatchObject({ output: "5" });
    expect(asked).toContain("server/discover");
    expect(asked).toContain("tools/call");
    expect(asked).not.toContain("");
  } finally {
    app.close();
  }
});

test("an agent of a daemon calls its server by the rules, a person is asked where words from outside would act, and nothing is left running", async () => {
  const folder = join(realpathSync(house.home), "shared");
  mkdirSync(folder);
  writeFileSync(join(folder, "a.txt"), "words of somebody else");
  const path = (name: string): string => JSON.stringify({ path: join(folder, name) });
  const files = reference("server-filesystem", folder);
  const main = { default: true, mcp: { files }, tools: { deny: ["mcp__files__move_file"] } };
  const guildhall = await createGuildhall({
    home: join(house.home, "daemon"),
    log: "error",
    config: { agents: { main, other: {} } } as never,
  });
  try {
    expect(await guildhall.ask("main", `call mcp__files__read_text_file ${path("a.txt")}`)).toContain("words of somebody else");
    const source = join(folder, "a.txt");
    const move = JSON.stringify({ source, destination: join(folder, "moved.txt") });
    expect(await guildhall.ask("main", `call mcp__files__move_file ${move}`)).toContain("tool.denied");
    expect(existsSync(source)).toBe(true);
    expect(await guildhall.ask("other", `call mcp__files__read_text_file ${path("a.txt")}`)).toContain("no MCP server files");
    const write = JSON.stringify({ path: join(folder, "b.txt"), content: "new" });
    const answer = guildhall.ask("main", `call mcp__files__read_text_file ${path("a.txt")} then call mcp__files__write_file ${write}`);
    const questions = async () => (await guildhall.client.approvals.list({ state: "asked" })).approvals;
    await expect.poll(questions, { timeout: 10_000 }).toMatchObject([{ agent: "main", tool: "mcp__files__write_file" }]);
    expect(existsSync(join(folder, "b.txt"))).toBe(false);
    await guildhall.client.approvals.answer((await questions())[0]?.id ?? "", "approve");
    await answer;
    expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("new");
  } finally {
    await guildhall.stop();
  }
  expect(execFileSync("ps", ["-eo", "args"]).toString()).not.toContain(folder);
}, 40_000);

test("the config in the guide loads", () => {
  const guide = readFileSync(new URL("../../docs/mcp.md", import.meta.url), "utf8");
  const [, text = ""] = /```yaml\n([\s\S]+?)```/.exec(guide) ?? [];
  const { quarantined, warnings, config } = loadSettings({ home: house.home }, { TRACKER_TOKEN: "a secret value" }, { text });
  expect([[...quarantined], warnings, Object.keys(config.agents.main?.mcp ?? {})]).toEqual([[], [], ["files", "tracker"]]);
  expect(nameOf("files", "getUser")).toMatch(/^mcp__files__get_user-[0-9a-f]{8}$/);
});

async function everythingAt(url: string, port: number): Promise<ChildProcess> {
  const server = spawn(process.execPath, [join(PACKAGES, "server-everything/dist/index.js"), "streamableHttp"], {
    env: { PORT: String(port) },
    stdio: "ignore",
  });
  const answers = (): Promise<boolean> =>
    fetch(url).then(
      () => true,
      () => false,
    );
  while (!(await answers())) await sleep(50);
  return server;
}
