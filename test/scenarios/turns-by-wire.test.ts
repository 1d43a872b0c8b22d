import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Approval } from "../../src/contract/approvals.ts";
import type { Run } from "../../src/contract/wire.ts";
import { type ModelServer, modelServer, type Script, type SeenRequest } from "../model-server.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

/** A real daemon, asked over HTTP, whose model is a server that speaks OpenAI's wire format and says what the test wants. */
let server: ModelServer;
let home: Home;
let daemon: RunningDaemon;
let workspace: string;

beforeAll(async () => {
  server = await modelServer();
  home = new Home(`
model: test/any
providers: { test: { type: openai-compatible, base_url: ${server.url}, api_key: sk-of-the-test-provider } }
agents:
  main: { default: true, tools: { profile: coding, deny: [web_search] } }
  asking: { tools: { profile: coding, ask: [file_write] } }
  short: { max_steps: 3 }
  poor: { budget: { tokens_per_day: 1000 } }
`);
  workspace = join(home.path, "agents/main/workspace");
  mkdirSync(workspace, { recursive: true });
  writeFileSync(join(workspace, "one.txt"), "the first file\n");
  writeFileSync(join(workspace, "two.txt"), "the second file\n");
  writeFileSync(join(workspace, "huge.txt"), "a line that is repeated\n".repeat(50_000));
  daemon = await home.start();
});
afterAll(async () => {
  await home?.remove();
  await server?.close();
});

let messages = 0;
async function ask(
  script: Script,
  options: { agent?: string; text?: string; peer?: string } = {},
): Promise<{ run: Run; asked: SeenRequest[] }> {
  server.play(script);
  const before = server.requests.length;
  const id = `m${messages++}`;
  const { runId } = await daemon.send({
    id,
    peer: options.peer ?? id,
    text: options.text ?? "do it",
    ...(options.agent ? { agent: options.agent } : {}),
  });
  return { run: await daemon.finished(runId), asked: server.requests.slice(before) };
}

/** What the model was told of its calls, by call. */
const resultsIn = (request: SeenRequest | undefined): string[] =>
  ((request?.body.messages ?? []) as { role: string; content: string }[])
    .filter(({ role }) => role === "tool")
    .map(({ content }) => content);

describe("a turn", () => {
  test("makes several calls one after another, and answers with what it has found", async () => {
    const { run, asked } = await ask([
      { text: "Let me look.", calls: [{ tool: "file_read", args: { path: "one.txt" } }] },
      { calls: [{ tool: "file_write", args: { path: "three.txt", content: "written" } }] },
      "Both done.",
    ]);
    expect(run).toMatchObject({ status: "completed", reply: { text: "Both done." }, usage: { inputTokens: 30, outputTokens: 15 } });
    expect(resultsIn(asked[1])).toEqual([expect.stringContaining("the first file")]);
    expect(readFileSync(join(workspace, "three.txt"), "utf8")).toBe("written");
    expect(asked.map(({ body }) => body.messages.length)).toEqual([
      asked[0]?.body.messages.length,
      asked[0]?.body.messages.length + 2,
      asked[0]?.body.messages.length + 4,
    ]);
  });

  test("makes parallel calls, each with its own result in its place", async () => {
    const { run, asked } = await ask([
      { calls: ["one.txt", "two.txt", "missing.txt"].map((path) => ({ tool: "file_read", args: { path }, pieces: 7 })) },
      "Read.",
    ]);
    expect(run.status).toBe("completed");
    expect(resultsIn(asked[1])).toEqual([
      expect.stringContaining("the first file"),
      expect.stringContaining("the second file"),
      expect.stringContaining("workspace.not_found"),
    ]);
  });

  test("is told what is wrong with arguments that are no JSON, that do not fit, with a tool that is not there, and goes on", async () => {
    const { run, asked } = await ask([
      {
        calls: [
          { tool: "file_read", args: '{"path": "one.txt"' },
          { tool: "file_read", args: { pth: "one.txt" } },
          { tool: "fil_read", args: { path: "one.txt" } },
          { tool: "file_read", args: "[1]" },
        ],
      },
      "I see.",
    ]);
    expect(run).toMatchObject({ status: "completed", reply: { text: "I see." } });
    const [broken, wrong, unknown, list] = resultsIn(asked[1]);
    expect(broken).toMatch(/^tool\.bad_arguments: .*not JSON/);
    expect(wrong).toMatch(/^tool\.bad_arguments: .*path/);
    expect(unknown).toMatch(/^tool\.unknown: .*did you mean "file_read"/);
    expect(list).toMatch(/^tool\.bad_arguments: /);
  });

  test("is refused a tool that was never offered, and told why", async () => {
    const { asked } = await ask([{ calls: [{ tool: "web_search", args: { query: "x" } }] }, "Then not."]);
    expect(asked[0]?.body.tools.map((tool: { function: { name: string } }) => tool.function.name)).not.toContain("web_search");
    expect(resultsIn(asked[1])).toEqual([expect.stringMatching(/^tool\.denied: .*web_search/)]);
  });

  test("is shown the beginning and end of a huge output, and can read the rest in parts", async () => {
    const { run, asked } = await ask((request, count) => {
      if (count === 0)
        return {
          calls: [
            { tool: "file_search", args: { pattern: "repeated", path: "huge.txt" } },
            { tool: "terminal", args: { command: "cat huge.txt" } },
          ],
        };
      if (count === 1) {
        const [path] = /\.guildhall\/outputs\/[\w.-]+\.txt/.exec(resultsIn(request)[1] ?? "") ?? [];
        return { calls: [{ tool: "file_read", args: { path, offset: 40_000, limit: 2 } }] };
      }
      return "Paged.";
    });
    expect(run).toMatchObject({ status: "completed", reply: { text: "Paged." } });
    for (const result of resultsIn(asked[1])) expect(result.length).toBeLessThan(31_000);
    expect(resultsIn(asked[2]).at(-1)).toContain("a line that is repeated");
  });

  test("is answered in the end when the provider first asks to wait, then breaks the stream, then answers", async () => {
    const { run, asked } = await ask([
      { status: 429, headers: { "retry-after": "1" } },
      { text: "One two three four five.", cutAfter: 3 },
      "Here at last.",
    ]);
    expect(run).toMatchObject({ status: "completed", reply: { text: "Here at last." } });
    expect(asked).toHaveLength(3);
    expect((asked[1]?.at as number) - (asked[0]?.at as number)).toBeGreaterThanOrEqual(990);
  });

  test("that was cut in the middle of its calls makes none of them", async () => {
    const { run } = await ask([
      { text: "Writing.", calls: [{ tool: "file_write", args: { path: "cut.txt", content: "half" }, pieces: 9 }], cutAfter: 4 },
      "I did nothing.",
    ]);
    expect(run.reply?.text).toBe("I did nothing.");
    expect(() => readFileSync(join(workspace, "cut.txt"))).toThrow("ENOENT");
  });

  test("fails with the provider's own words when it refuses, and is not tried again", async () => {
    const { run, asked } = await ask([{ status: 400, error: "no such thing" }]);
    expect(run).toMatchObject({ status: "failed", error: { code: "model.refused", message: expect.stringContaining("no such thing") } });
    expect(asked).toHaveLength(1);
    expect(JSON.stringify(run)).not.toContain("sk-of-the-test-provider");
  });

  test("of a model that hangs can be stopped at once, and the conversation goes on", async () => {
    server.play([{ text: "I begin and", hangAfter: 2 }]);
    const before = server.requests.length;
    const { runId } = await daemon.send({ id: "hanging", peer: "hanging" });
    await server.seen(before + 1);
    expect((await daemon.fetch(`/api/runs/${runId}/stop`, { method: "POST" })).status).toBe(200);
    expect(await daemon.finished(runId)).toMatchObject({ status: "failed", error: { code: "run.stopped" } });
    await expect.poll(() => server.requests[before]?.abandoned).toBe(true);
    expect((await ask(["Back again."], { peer: "hanging" })).run.reply?.text).toBe("Back again.");
  });

  test("that makes the same call again and again is told, then stopped", async () => {
    const same = { calls: [{ tool: "file_read", args: { path: "one.txt" } }] };
    const { run, asked } = await ask(() => same);
    expect(run).toMatchObject({ status: "failed", error: { code: "turn.repeating" } });
    expect(asked.length).toBeLessThan(8);
    expect(resultsIn(asked.at(-1)).at(-1)).toMatch(/^turn\.repeating: .*several times/);
  });

  test("that reaches its limit of steps is asked for a last word without tools", async () => {
    const { run, asked } = await ask(
      ({ body }, count) =>
        body.tool_choice === "none"
          ? "That is what I have."
          : { calls: [{ tool: "file_list", args: { path: count === 0 ? "." : `./${"./".repeat(count)}` } }] },
      { agent: "short" },
    );
    expect(run).toMatchObject({ status: "completed", reply: { text: "That is what I have." } });
    expect(asked).toHaveLength(4);
  });

  test("that would cost more than there is left is refused before the model is asked", async () => {
    const { run, asked } = await ask(["never said"], { agent: "poor", text: "x".repeat(20_000) });
    expect(run).toMatchObject({
      status: "failed",
      error: { code: "budget.exceeded", message: expect.stringContaining("agents.poor.budget.tokens_per_day") },
    });
    expect(asked).toHaveLength(0);
  });
});

describe("a call that needs a person's word", () => {
  const approvals = async (): Promise<Approval[]> =>
    ((await (await daemon.fetch("/api/approvals?state=asked")).json()) as { approvals: Approval[] }).approvals;
  const wants: Script = [{ calls: [{ tool: "file_write", args: { path: "asked.txt", content: "yes\u202e" } }] }, "So be it."];

  async function asks(peer: string): Promise<{ runId: string; approval: Approval }> {
    server.play(wants);
    const { runId } = await daemon.send({ id: peer, peer, agent: "asking" });
    await expect.poll(async () => (await daemon.run(runId)).status, { timeout: 10_000 }).toBe("waiting");
    const [approval] = await approvals();
    return { runId, approval: approval as Approval };
  }
  const answer = (id: string, verdict: string) =>
    daemon.fetch(`/api/approvals/${id}`, { method: "POST", body: JSON.stringify({ verdict }) });
  const file = () => readFileSync(join(home.path, "agents/asking/workspace/asked.txt"), "utf8");

  test("waits, shows what would really be done, and is made once it is approved", async () => {
    const { runId, approval } = await asks("yes");
    expect(approval).toMatchObject({ agent: "asking", tool: "file_write", run: runId });
    expect(approval.shown).toContain("\\u{202e}");
    expect(file).toThrow("ENOENT");
    expect((await answer(approval.id, "approve")).status).toBe(200);
    expect(await daemon.finished(runId)).toMatchObject({ status: "completed", reply: { text: "So be it." } });
    expect(file()).toBe("yes\u202e");
    expect(await approvals()).toEqual([]);
  });

  test("is not made when it is denied, and the model is told", async () => {
    const before = server.requests.length;
    const { runId, approval } = await asks("no");
    await answer(approval.id, "deny");
    expect(await daemon.finished(runId)).toMatchObject({ status: "completed" });
    expect(resultsIn(server.requests[before + 1])).toEqual([expect.stringMatching(/^tool\.denied: .*denied/)]);
  });

  test("survives the death of the daemon", async () => {
    const { runId, approval } = await asks("later");
    await daemon.kill("SIGKILL");
    daemon = await home.start();
    expect((await daemon.run(runId)).status).toBe("waiting");
    await answer(approval.id, "approve");
    expect(await daemon.finished(runId)).toMatchObject({ status: "completed", reply: { text: "So be it." } });
  });
});
