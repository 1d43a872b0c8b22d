import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";

const CONFIG = `agents:
  main: { default: true }
  coder: { group_scope: per-peer }
  old: { state: archived }
  nap: { state: paused }
bindings:
  - { agent: coder, telegram: "-100", topic: "42" }
  - { agent: main, telegram: "-100" }
  - { agent: old, slack: "*" }
  - { agent: nap, webhook: "*" }
`;
const group = { platform: "telegram", chat: "-100", chat_type: "group" as const, peer: "7" };

describe("route explain, without a daemon", () => {
  const home = new Home(CONFIG);
  afterAll(() => home.remove());
  const explain = (...args: string[]) => home.run(["route", "explain", ...args]);

  test("tells a person the agent, the line and why the others lost", async () => {
    const { code, stdout } = await explain("--platform", "telegram", "--chat", "-100", "--topic", "42", "--peer", "7");
    expect(code).toBe(0);
    expect(stdout.split("\n").map((line) => line.trimEnd())).toEqual([
      "  → coder   tier topic   guildhall.yaml:7",
      "    ✓  :7   telegram -100, topic 42 → coder",
      "    ·  :8   telegram -100 → main             less specific than line 7",
      "    ·  :9   slack * → old                    another platform",
      "    ·  :10  webhook * → nap                  another platform",
      "  session agent:coder:telegram:group:-100:topic:42:peer:7",
      "",
    ]);
  });

  test("tells a program all of it", async () => {
    const { code, stdout } = await explain("--platform", "telegram", "--chat", "1", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      agent: "main",
      tier: "default",
      binding: null,
      because: 'no rule matches this address; "main" has `default: true`',
      sessionKey: "agent:main:telegram:group:1",
      trace: [
        { binding: "telegram -100, topic 42 → coder", line: 7, hit: false, why: "another chat" },
        { line: 8, hit: false, why: "another chat" },
        { line: 9, hit: false, why: "another platform" },
        { line: 10, hit: false, why: "another platform" },
      ],
    });
  });

  test("an agent that does not answer is told as that; exit 1 where the message would be refused", async () => {
    const archived = await explain("--platform", "slack", "--chat", "1");
    expect(archived).toMatchObject({ code: 1, stdout: expect.stringContaining("refused: agent old is archived") });
    expect(archived.stdout).not.toContain("session ");
    const paused = await explain("--platform", "webhook", "--chat", "1", "--json");
    expect(paused.code).toBe(0);
    expect(JSON.parse(paused.stdout)).toMatchObject({ agent: "nap", state: "paused", refused: false });
  });

  test("nobody is named without a chat, and a wrong type is refused", async () => {
    expect(await explain("--platform", "x")).toMatchObject({ code: 2, stderr: expect.stringContaining("--chat") });
    expect(await explain("--platform", "x", "--chat", "1", "--chat-type", "thread")).toMatchObject({ code: 2 });
    expect(await home.run(["route", "diff"])).toMatchObject({ code: 2, stderr: expect.stringContaining("--config") });
  });

  test.each([
    ["--chat: is empty", ["--chat", ""]],
    ["--chat: is longer than 256 characters", ["--chat", "1".repeat(257)]],
    ["--team: team is another name for guild, and they differ", ["--chat", "1", "--guild", "a", "--team", "b"]],
  ])("says %s", async (words, args) => {
    expect(await explain("--platform", "x", ...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(words) });
  });
});

test("unrouted: refuse is exit 1, an agent null and the tier none", async () => {
  const home = new Home("unrouted: refuse\n");
  try {
    const { code, stdout } = await home.run(["route", "explain", "--platform", "x", "--chat", "1", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ agent: null, tier: "none", sessionKey: null, refused: true });
    expect((await home.run(["route", "explain", "--platform", "x", "--chat", "1"])).stdout).toContain("✗ refused");
  } finally {
    await home.remove();
  }
});

test("an agent whose id is none is refused with that reason, commands included, as it is explained", async () => {
  const home = new Home('agents:\n  main: { default: true }\n  "Bad Id": {}\nbindings:\n  - { agent: "Bad Id", telegram: "-100" }\n');
  try {
    const daemon = await home.start();
    for (const text of ["hello", "/help"]) {
      const { runId } = await daemon.send({ ...group, id: text, text });
      const run = await daemon.run(runId);
      expect(run).toMatchObject({ agent: "Bad Id", sessionKey: null, status: "refused", error: { code: "agent.quarantined" } });
      expect(run.error?.message).toContain("agent Bad Id is quarantined: an agent's id is");
      const response = await daemon.fetch("/api/route/explain?platform=telegram&chat=-100&peer=7");
      const { agent, tier, binding, because, trace, ...more } = (await response.json()) as Record<string, unknown>;
      expect({ agent, tier, binding, because, trace, revision: 1 }).toEqual(run.decision);
      expect(more).toMatchObject({ sessionKey: null, state: "quarantined", refused: true, standstill: run.error?.message });
    }
  } finally {
    await home.remove();
  }
});

test("of very many rules, a stored message knows the nearest and how many there are besides", async () => {
  const rules = Array.from({ length: 150 }, (_, index) => `  - { agent: main, telegram: "${index}" }\n`);
  const home = new Home(`bindings:\n${rules.join("")}`);
  try {
    const daemon = await home.start();
    const { decision } = await daemon.run((await daemon.send({ ...group, id: "1", chat: "149" })).runId);
    expect(decision).toMatchObject({ tier: "chat", binding: "telegram 149 → main", omitted: 130 });
    expect(decision.trace).toHaveLength(20);
    expect(decision.trace[0]).toMatchObject({ hit: true, line: 151 });
    const { stdout } = await home.run(["route", "explain", "--platform", "telegram", "--chat", "149"]);
    expect(stdout).toContain("… 110 more; --json tells all");
  } finally {
    await home.remove();
  }
});

describe("with a daemon", () => {
  const home = new Home(CONFIG);
  const next = join(home.path, "next.yaml");
  let daemon: RunningDaemon;
  beforeAll(async () => {
    daemon = await home.start();
    for (let index = 0; index < 5; index++) await daemon.send({ ...group, id: `t${index}`, topic: "42" });
    for (let index = 0; index < 3; index++) await daemon.send({ ...group, id: `g${index}` });
    await daemon.send({ ...group, id: "named", agent: "coder" });
    await daemon.send({ id: "d", platform: "telegram", chat: "7", peer: "7", chat_type: "dm" });
  });
  afterAll(() => home.remove());

  test("HTTP explains what the command line does", async () => {
    const response = await daemon.fetch("/api/route/explain?platform=telegram&chat=-100&topic=42&peer=7");
    const local = await home.run([
      "route",
      "explain",
      "--platform",
      "telegram",
      "--chat",
      "-100",
      "--topic",
      "42",
      "--peer",
      "7",
      "--json",
    ]);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(JSON.parse(local.stdout));
  });

  test("a reader may ask, others may not; what is missing is said", async () => {
    const token = async (scope: string): Promise<string> =>
      ((await (await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope }) })).json()) as { token: string }).token;
    const as = async (scope: string, path: string) =>
      (await daemon.fetch(path, { headers: { authorization: `Bearer ${await token(scope)}` } })).status;
    for (const path of ["/api/route/explain?platform=x&chat=1", "/api/route/recorded?last=1"]) {
      expect(await as("read", path)).toBe(200);
      expect(await as("agent:coder", path)).toBe(403);
      expect(await as("guest:g", path)).toBe(403);
      expect(await as("channel:telegram", path)).toBe(403);
    }
    expect((await daemon.fetch("/api/route/explain?platform=x")).status).toBe(422);
    expect((await daemon.fetch("/api/route/explain?chat=1")).status).toBe(422);
    expect((await daemon.fetch("/api/route/recorded?last=100001")).status).toBe(422);
    expect((await daemon.fetch("/api/route/explain?platform=x&chat=1&guild=a&team=b")).status).toBe(422);
    const twoGuilds = JSON.stringify({ ...group, id: "two", text: "hello", guild: "a", team: "b" });
    expect((await daemon.fetch("/api/messages", { method: "POST", body: twoGuilds })).status).toBe(422);
  });

  test("a stored message knows the rules that lost", async () => {
    const { runId } = await daemon.send({ ...group, id: "kept", topic: "42" });
    const { decision } = await daemon.run(runId);
    expect(decision).toMatchObject({ agent: "coder", tier: "topic", binding: "telegram -100, topic 42 → coder" });
    expect(decision.trace.map(({ line, hit }) => [line, hit])).toEqual([
      [7, true],
      [8, false],
      [9, false],
      [10, false],
    ]);
    await daemon.fetch(`/api/runs/${runId}/live`);
  });

  test("route diff tells which recorded messages would move, by which new rule", async () => {
    writeFileSync(
      next,
      CONFIG.replace("{ agent: main, telegram", "{ agent: coder, telegram").replace(
        '{ agent: coder, telegram: "-100", topic',
        '{ agent: nap, telegram: "-100", topic',
      ),
    );
    const { code, stdout } = await home.run(["route", "diff", "--config", next, "--json", "--last", "100"]);
    expect(code).toBe(0);
    const diff = JSON.parse(stdout);
    expect(diff).toMatchObject({ compared: 10, moved: 9 });
    expect(diff.moves).toMatchObject([
      { from: "coder", to: "nap", tier: "topic", line: 7, count: 6, state: "paused", binding: "telegram -100, topic 42 → nap" },
      { from: "main", to: "coder", tier: "chat", line: 8, count: 3, state: "active" },
    ]);
    expect(diff.moves[0].examples).toHaveLength(3);
    const words = (await home.run(["route", "diff", "--config", next])).stdout;
    expect(words).toContain("9 of 10 recorded messages would move");
    expect(words).toContain("main → coder   tier chat, next.yaml:8 telegram -100 → coder");
  });

  test("route diff with the same config moves nothing, and --last is the newest", async () => {
    expect((await home.run(["route", "diff", "--config", join(home.path, "guildhall.yaml")])).stdout).toContain("none of 10");
    const { stdout } = await home.run(["route", "diff", "--config", next, "--json", "--last", "1"]);
    expect(JSON.parse(stdout)).toMatchObject({ compared: 1, moved: 1, moves: [{ from: "coder" }] });
  });

  test("an agent that the new config breaks is told, though its messages go to it as before", async () => {
    writeFileSync(next, CONFIG.replace("group_scope", "grup_scope"));
    const { code, stdout, stderr } = await home.run(["route", "diff", "--config", next, "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      moved: 0,
      broken: [{ agent: "coder", because: expect.stringContaining("next.yaml:3:12") }],
    });
    expect(stderr).toContain("the agent coder is broken, and its messages are refused");
  });

  test("a broken new config is refused with its line", async () => {
    writeFileSync(next, `${CONFIG}  - { agent: main, telegram: "*", topic: "1" }\n`);
    expect(await home.run(["route", "diff", "--config", next])).toMatchObject({ code: 2, stderr: expect.stringContaining("next.yaml:11") });
  });
});
