import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, type TestContext, test } from "vitest";
import type { Provider } from "../../src/abilities/models/model-registry.ts";
import type { AgentView, ConfigRevisionList, RestartedAgent } from "../../src/contract/agents.ts";
import type { Admission, Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { type ModelRequest, wordsOf } from "../../src/kernel/model.ts";
import { addTables, migratedPostgresPlace } from "../stores.ts";

const SOON = { timeout: 15_000, interval: 20 };

/** A model that says who it is, waits until the test lets it go on, and then answers. */
class Gate {
  readonly asked: ModelRequest[] = [];
  readonly #waiting: (() => void)[] = [];
  open = false;
  failing = 0;

  readonly provider: Provider = {
    name: "gate",
    models: () => ["a", "b"],
    model: (name) => ({
      name: `gate/${name}`,
      scripted: true,
      stream: (request, signal) => this.#answer(name, request, signal),
    }),
  };

  async *#answer(name: string, request: ModelRequest, signal: AbortSignal) {
    this.asked.push(request);
    if (this.failing-- > 0) throw new Error("the provider is down");
    yield { kind: "text" as const, text: `${name} ${request.system?.split("\n")[0]}: ` };
    if (!this.open)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    yield { kind: "text" as const, text: wordsOf(request.messages.at(-1)) };
  }

  letGo(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** What happens to turns that run or wait while the config and the states of agents change under them. */
/** What ends as a secret begins is sent with the next piece: how an answer is cut into pieces is chance. */
const joined = (stream: string): string => stream.replaceAll('"}\n\nevent: text\ndata: {"text":"', "");

describe.each(["SQLite", "PostgreSQL"])("agents at work on %s", (kind) => {
  async function working(config: string, { onTestFinished }: TestContext) {
    const place = kind === "PostgreSQL" ? await migratedPostgresPlace() : undefined;
    const head = place ? `store: ${place.location}\n` : "";
    const home = mkdtempSync(join(tmpdir(), "guildhall-at-work-"));
    addTables(home);
    const gate = new Gate();
    const daemons: Daemon[] = [];
    onTestFinished(async () => {
      gate.open = true;
      gate.letGo();
      for (const daemon of daemons) await daemon.stop();
      rmSync(home, { recursive: true, force: true });
      await place?.remove();
    });
    const write = (text: string): void => {
      writeFileSync(join(home, "next.yaml"), head + text);
      renameSync(join(home, "next.yaml"), join(home, "guildhall.yaml"));
    };
    write(config);
    const start = async (at = home): Promise<Daemon> => {
      const daemon = await startDaemon({ home: at, name: basename(at), port: 0, logLevel: "error", providers: [gate.provider] });
      daemons.push(daemon);
      return daemon;
    };
    return { place, home, head, gate, write, start, client: clientOf(await start()) };
  }

  function clientOf(daemon: Daemon) {
    const call = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
      const response = await fetch(`${daemon.url}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${daemon.operatorToken}`, ...init.headers },
      });
      if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
      return (await response.json()) as T;
    };
    const send = (id: string, more: object = {}): Promise<Admission> =>
      call("/api/messages", {
        method: "POST",
        body: JSON.stringify({ id, platform: "test", chat: "c", peer: "p", chat_type: "dm", text: id, ...more }),
      });
    const run = (id: string): Promise<Run> => call(`/api/runs/${id}`);
    const verb = <T = AgentView>(id: string, word: string): Promise<T> => call(`/api/agents/${id}/${word}`, { method: "POST" });
    const revision = async (): Promise<number> => (await call<ConfigRevisionList>("/api/config/revisions")).current.number;
    const live = (id: string): { text: string; readonly ended: Promise<void> } => {
      const heard = { text: "", ended: Promise.resolve() };
      heard.ended = (async () => {
        const response = await fetch(`${daemon.url}/api/runs/${id}/live`, { headers: { authorization: `Bearer ${daemon.operatorToken}` } });
        for await (const piece of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) heard.text += piece;
      })();
      return heard;
    };
    return { daemon, call, send, run, verb, revision, live };
  }

  test("a turn ends with the personality and model it began with, also when its agent is taken out meanwhile", async (context) => {
    const { expect } = context;
    const { gate, write, client } = await working("agents: { main: {}, w: { model: gate/a, personality: one } }\n", context);
    const first = await client.send("1", { agent: "w" });
    await expect.poll(() => gate.asked.length, SOON).toBe(1);
    const second = await client.send("2", { agent: "w" });
    write("agents: { main: {}, w: { model: gate/b, personality: two } }\n");
    await expect.poll(client.revision, SOON).toBe(2);
    gate.letGo();
    await expect.poll(() => gate.asked.length, SOON).toBe(2);
    expect(await client.run(first.runId)).toMatchObject({ status: "completed", reply: { text: "a one: 1" } });
    const third = await client.send("3", { agent: "w" });
    write("agents: { main: {} }\n");
    await expect.poll(client.revision, SOON).toBe(3);
    gate.letGo();
    await expect.poll(async () => (await client.run(third.runId)).status, SOON).toBe("failed");
    expect(await client.run(second.runId)).toMatchObject({ status: "completed", reply: { text: "b two: 2" } });
    expect(await client.run(third.runId)).toMatchObject({ error: { code: "agent.unknown" } });
  });

  test("a restart begins running turns again, as the agent is now, and each is answered once", async (context) => {
    const { expect } = context;
    const { gate, write, client } = await working("agents: { main: {}, w: { model: gate/a, personality: one } }\n", context);
    const sent = await Promise.all(Array.from({ length: 40 }, (_, index) => client.send(`m${index}`, { agent: "w", peer: `p${index}` })));
    await expect.poll(() => gate.asked.length, SOON).toBe(40);
    const watched = client.live((sent[0] as Admission).runId);
    await expect.poll(() => watched.text, SOON).toContain("a one: ");
    write("agents: { main: {}, w: { model: gate/b, personality: two } }\n");
    const { restarted } = await client.verb<RestartedAgent>("w", "restart");
    expect(restarted.toSorted()).toEqual(sent.map(({ runId }) => runId).toSorted());
    await expect.poll(() => gate.asked.length, SOON).toBe(80);
    const late = client.live((sent[0] as Admission).runId);
    await expect.poll(() => late.text, SOON).toContain("b two: ");
    gate.letGo();
    for (const [index, { runId }] of sent.entries()) {
      await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
      expect((await client.run(runId)).reply?.text).toBe(`b two: m${index}`);
    }
    await Promise.all([watched.ended, late.ended]);
    expect(joined(watched.text)).toMatch(/"a one: "[\s\S]*event: restart[\s\S]*"b two: m0"[\s\S]*event: done/);
    expect(joined(late.text)).toMatch(/^:\n\nevent: text\ndata: {"text":"b two: m0"}/);
    expect(gate.asked).toHaveLength(80);
  });

  test("pausing and resuming while messages come loses none, answers none twice, and keeps their order", async (context) => {
    const { expect } = context;
    const { gate, client } = await working("agents: { main: {}, w: { model: gate/a } }\n", context);
    gate.open = true;
    const storm = (async () => {
      for (let round = 0; round < 12; round++) {
        await client.verb("w", round % 2 === 0 ? "pause" : "resume");
        await sleep(round * 7);
      }
    })();
    const chats = Array.from({ length: 6 }, async (_, chat) => {
      const sent: Admission[] = [];
      for (let index = 0; index < 25; index++) sent.push(await client.send(`${chat}-${index}`, { agent: "w", peer: `p${chat}` }));
      return sent;
    });
    const sent = await Promise.all(chats);
    await storm;
    for (const all of sent)
      for (const { runId } of all) await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
    const said = gate.asked.map(({ messages }) => wordsOf(messages.at(-1)));
    expect(said).toHaveLength(150);
    for (const [chat] of sent.entries())
      expect(said.filter((text) => text?.startsWith(`${chat}-`))).toEqual(Array.from({ length: 25 }, (_, index) => `${chat}-${index}`));
    expect((await client.call<{ agents: AgentView[] }>("/api/agents")).agents[1]).toMatchObject({
      state: "active",
      running: 0,
      waiting: 0,
    });
  });

  test("a paused agent does not try again; once it goes on, it does", async (context) => {
    const { expect } = context;
    const { gate, client } = await working("agents: { main: {}, w: { model: gate/a } }\n", context);
    gate.open = true;
    gate.failing = Number.POSITIVE_INFINITY;
    const { runId } = await client.send("1", { agent: "w" });
    await expect.poll(() => gate.asked.length, SOON).toBeGreaterThan(0);
    await client.verb("w", "pause");
    await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("waiting");
    const asked = gate.asked.length;
    gate.failing = 0;
    await sleep(1_200);
    expect(gate.asked).toHaveLength(asked);
    await client.verb("w", "resume");
    await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
    expect(gate.asked).toHaveLength(asked + 1);
  });

  test("archiving lets what runs end, and fails what waits behind it with the reason", async (context) => {
    const { expect } = context;
    const { gate, client } = await working("agents: { main: {}, w: { model: gate/a } }\n", context);
    const [first, second] = [await client.send("1", { agent: "w" }), await client.send("2", { agent: "w" })];
    await expect.poll(() => gate.asked.length, SOON).toBe(1);
    await client.verb("w", "archive");
    gate.letGo();
    await expect.poll(async () => (await client.run(second.runId)).status, SOON).toBe("failed");
    expect(await client.run(first.runId)).toMatchObject({ status: "completed" });
    expect(await client.run(second.runId)).toMatchObject({ error: { code: "agent.archived" } });
  });

  test("what was admitted before a quarantine is answered after the repair, in order", async (context) => {
    const { expect } = context;
    const { gate, write, client } = await working("agents: { main: {}, w: { model: gate/a } }\n", context);
    const sent = [await client.send("1", { agent: "w" }), await client.send("2", { agent: "w" }), await client.send("3", { agent: "w" })];
    await expect.poll(() => gate.asked.length, SOON).toBe(1);
    write("agents: { main: {}, w: { modle: gate/a } }\n");
    await expect.poll(client.revision, SOON).toBe(2);
    gate.letGo();
    gate.open = true;
    await expect.poll(async () => (await client.run((sent[1] as Admission).runId)).status, SOON).toBe("waiting");
    write("agents: { main: {}, w: { model: gate/a } }\n");
    for (const { runId } of sent) await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
    expect(gate.asked.map(({ messages }) => wordsOf(messages.at(-1)))).toEqual(["1", "2", "3"]);
  });

  test("while the file is gone, nobody is taken away, nothing is written in its place, and an agent can be restarted", async (context) => {
    const { expect } = context;
    const { home, gate, write, client } = await working("agents: { main: {}, w: { model: gate/a } }\n", context);
    const { runId } = await client.send("1", { agent: "w" });
    await expect.poll(() => gate.asked.length, SOON).toBe(1);
    rmSync(join(home, "guildhall.yaml"));
    await expect(client.verb("main", "pause")).rejects.toThrow(/^422: .*the config file is gone or empty/);
    await expect
      .poll(async () => (await client.call<ConfigRevisionList>("/api/config/revisions")).revisions[0]?.state, SOON)
      .toBe("rejected");
    expect(existsSync(join(home, "guildhall.yaml"))).toBe(false);
    expect((await client.verb<RestartedAgent>("w", "restart")).restarted).toEqual([runId]);
    await expect.poll(() => gate.asked.length, SOON).toBe(2);
    gate.letGo();
    await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
    write("agents: { main: {}, w: { model: gate/a } }\n");
    expect(await client.verb("w", "pause")).toMatchObject({ state: "paused" });
  });

  test.runIf(kind === "PostgreSQL")(
    "of two daemons with files of their own, the one whose agent answers takes what waits",
    async (context) => {
      const { expect } = context;
      const { head, gate, start, client } = await working("agents: { main: {}, w: { model: gate/a, state: paused } }\n", context);
      gate.open = true;
      const sent: Admission[] = [];
      for (let index = 0; index < 10; index++) sent.push(await client.send(String(index), { agent: "w" }));
      await expect.poll(async () => (await client.run((sent[0] as Admission).runId)).status, SOON).toBe("waiting");
      const other = mkdtempSync(join(tmpdir(), "guildhall-at-work-"));
      context.onTestFinished(() => rmSync(other, { recursive: true, force: true }));
      writeFileSync(join(other, "guildhall.yaml"), `${head}agents: { main: {}, w: { model: gate/a } }\n`);
      await start(other);
      for (const { runId } of sent) await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
      expect(gate.asked.map(({ messages }) => wordsOf(messages.at(-1)))).toEqual(sent.map((_, index) => String(index)));
    },
  );

  test.runIf(kind === "PostgreSQL")(
    "what a node has held that is gone is taken up by one that knows the newest config by an older number",
    async (context) => {
      const { expect } = context;
      const { place, gate, client } = await working("agents: { main: {}, w: { model: gate/a } }\n", context);
      gate.open = true;
      await client.verb("w", "pause");
      const { runId } = await client.send("1", { agent: "w" });
      await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("waiting");
      // As if another had held it with a text that came and went between two looks of this one.
      await place?.tamper("update held_turns set revision = 99");
      await client.verb("w", "resume");
      await expect.poll(async () => (await client.run(runId)).status, SOON).toBe("completed");
    },
  );
});
