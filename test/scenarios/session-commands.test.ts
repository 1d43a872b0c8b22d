import { describe, type ExpectStatic, type TestContext, test } from "vitest";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { DAEMON_DATABASES, postgresPlace } from "../stores.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

const CONFIG = "owners: [telegram:7]\nagents:\n  main: {default: true}\n  coder: {}\n";
const COMMAND_LINE = ["message.admitted", "route.decided", "command.ran"];

function homeOn(kind: string, { onTestFinished }: TestContext): Home {
  const place = kind === "PostgreSQL" ? postgresPlace() : undefined;
  const home = new Home(place ? `${CONFIG}store: ${place.location}\n` : CONFIG);
  onTestFinished(async () => {
    await home.remove();
    await place?.remove();
  });
  return home;
}

/** A real process, a real database, and the commands as people type them. */
// What commands do to records is shown on both databases by test/contract/commands.test.ts; here it is the way through a daemon.
describe.each(DAEMON_DATABASES)("commands through a daemon on %s", (kind) => {
  test("every command of the registry is answered on a terminal, and none reaches the model", async (context) => {
    const { expect } = context;
    const home = homeOn(kind, context);
    const daemon = await home.start();
    const chat = async (text: string) => {
      const { code, stdout } = await home.run(["chat", "-m", text]);
      return [code, stdout.trimEnd()];
    };
    expect(await chat("/help")).toEqual([0, expect.stringMatching(/^\/new - [\s\S]*\n\/help - /)]);
    expect(await chat("the sky is blue")).toEqual([0, expect.stringContaining("message 1 of our conversation")]);
    expect(await chat("/model ofline/demo")).toEqual([1, expect.stringContaining('did you mean "offline"?')]);
    // One program for the rest of what is typed: each costs as much to start as all of them to answer.
    const typed: [line: string, answer: RegExp][] = [
      ["the sea too", /message 2 of our conversation/],
      ["/new", /A new conversation with main begins/],
      ["the grass is green", /message 1 of our conversation/],
      ["/agents", /\* main\n {2}coder/],
      ["/agent coder", /From now on coder answers here, until \/agent default\./],
      ["hello", /Hello!/],
      ["/status", /agent: coder, because handed over to coder by terminal:/],
      ["/model offline/demo", /From the next turn on offline\/demo/],
      ["/agent default", /main answers here/],
      ["/stop", /There was nothing to stop\./],
      ["/approve zzz", /there is no approval "zzz"/],
      ["/deny zzz", /there is no approval "zzz"/],
      ["/stattus", /did you mean \/status\?/],
      ["/weather", /You said: "\/weather"/],
    ];
    const lines = await home.run(["chat"], { input: `${typed.map(([line]) => line).join("\n")}\n` });
    expect(lines.stdout).toMatch(new RegExp(typed.map(([, answer]) => answer.source).join("[\\s\\S]*")));
    expect(lines.code).toBe(0);

    const list = JSON.parse((await home.run(["sessions", "list", "--json"])).stdout);
    expect(list.sessions.map(({ agent, title }: { agent: string; title: string }) => [agent, title])).toEqual([
      ["main", "the sky is blue"],
      ["coder", "hello"],
    ]);
    const { key } = list.sessions[0] as { key: string };
    const shown = JSON.parse((await home.run(["sessions", "show", key, "--json"])).stdout);
    expect(shown.entries.map(({ epoch, role }: { epoch: number; role: string }) => `${epoch} ${role}`)).toEqual([
      ...["1 user", "1 assistant", "1 user", "1 assistant"],
      ...["2 user", "2 assistant", "2 user", "2 assistant"],
    ]);
    const found = await home.run(["sessions", "search", "sky", "blue"]);
    expect([found.code, found.stdout]).toEqual([0, expect.stringContaining("the «sky» is «blue»")]);
    expect((await home.run(["sessions", "search", "nowhere"])).code).toBe(1);
    expect((await home.run(["approvals", "list", "--json"])).stdout).toBe('{"approvals":[]}\n');
    expect((await home.run(["approvals", "approve", "zzz"])).code).toBe(1);
    expect((await daemon.kill("SIGTERM")).code).toBe(0);
  }, 120_000);

  test("runs are stopped over HTTP, unless they are over", async (context) => {
    const { expect } = context;
    const daemon = await homeOn(kind, context).start();
    const { runId } = await daemon.send({ id: "1" });
    await daemon.finished(runId);
    const stop = async (id: string) => {
      const answer = await daemon.fetch(`/api/runs/${id}/stop`, { method: "POST", body: "{}" });
      return [answer.status, ((await answer.json()) as { error?: { code: string } }).error?.code];
    };
    expect(await stop(runId)).toEqual([409, "run.over"]);
    expect(await stop("0".repeat(20))).toEqual([404, "request.not_found"]);
    expect(await stop("x")).toEqual([404, "request.not_found"]);
  });

  const points = [
    "command.ran",
    "message.admitted,store.commit.before",
    "message.admitted,store.commit.after",
    "message.admitted,command.ran",
  ];
  test.for(points)(
    "a command takes effect and is answered exactly once when the daemon dies at %s",
    { timeout: 60_000 },
    async (point, context) => {
      const { expect } = context;
      const home = homeOn(kind, context);
      const dying = await home.startCrashing(point);
      const from = { platform: "telegram", chat: "7", peer: "7" };
      if (point.startsWith("message")) await dying.send({ id: "0", ...from, text: "before" }).catch(() => {});
      await dying.send({ id: "1", ...from, text: "/new" }).catch(() => {});
      expect((await dying.ended).code).toBeNull();
      const next = await home.start();
      const { runId } = await next.send({ id: "1", ...from, text: "/new" });
      expect(await next.send({ id: "1", ...from, text: "/new" })).toMatchObject({ runId, duplicate: true });
      await ranOnce(next, runId, expect);
      const session = (await (await next.fetch(`/api/sessions/${encodeURIComponent("agent:main:telegram:dm:7")}`)).json()) as {
        epoch: number;
      };
      expect(session.epoch).toBe(2);
    },
  );

  async function ranOnce(daemon: RunningDaemon, runId: string, expect: ExpectStatic): Promise<void> {
    expect(await daemon.finished(runId)).toMatchObject({
      status: "completed",
      reply: { text: expect.stringContaining("new conversation") },
    });
    const types = (await daemon.eventsUntil(runId, "command.ran")).map((event: LedgerEvent) => event.type);
    expect(types).toEqual(COMMAND_LINE);
  }
});
