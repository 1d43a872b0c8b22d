import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Run } from "../../src/contract/wire.ts";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import type { Model } from "../../src/kernel/model.ts";
import { migratedPostgresPlace } from "../stores.ts";

const CONFIG = `
model: slow/model
limits: { turns: 4, waiting: 12, waiting_per_agent: 5 }
agents: { main: {}, other: {}, third: {}, fourth: {} }
`;

/** Answers when it is told to. */
function held(): { readonly model: Model; readonly letGo: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const model: Model = {
    name: "slow/model",
    scripted: true,
    price: { input: 0, output: 0 },
    async *stream(_request, signal) {
      await Promise.race([promise, new Promise((_, reject) => signal.addEventListener("abort", reject, { once: true }))]);
      yield { kind: "text", text: "done" };
    },
  };
  return { model, letGo: resolve };
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: {
    readonly runId: string;
    readonly duplicate: boolean;
    readonly error: { readonly code: string; readonly message: string };
  };
}

describe.each(["SQLite", "PostgreSQL"])("a daemon that has more than enough to do on %s", (kind) => {
  async function start(): Promise<{ daemon: Daemon; letGo: () => void; send: Send; runOf: (id: string) => Promise<Run> }> {
    const home = mkdtempSync(join(tmpdir(), "guildhall-overload-"));
    const place = kind === "PostgreSQL" ? await migratedPostgresPlace() : undefined;
    writeFileSync(join(home, "guildhall.yaml"), `${CONFIG}${place ? `store: ${place.location}\n` : ""}`);
    const { model, letGo } = held();
    const provider = { name: "slow", model: () => model, models: () => ["model"] };
    const daemon = await startDaemon({ home, port: 0, logLevel: "error", providers: [provider] });
    onTestFinished(async () => {
      letGo();
      await daemon.stop();
      await place?.remove();
      rmSync(home, { recursive: true, force: true });
    });
    const headers = { authorization: `Bearer ${daemon.operatorToken}`, "content-type": "application/json" };
    const send: Send = async (agent, id, more = {}) => {
      const message = { id, platform: "test", chat: id, peer: id, chat_type: "dm", agent, text: "hello" };
      const answer = await fetch(`${daemon.url}/api/messages`, {
        method: "POST",
        headers: { ...headers, ...more },
        body: JSON.stringify(message),
      });
      return { status: answer.status, retryAfter: answer.headers.get("retry-after"), body: (await answer.json()) as Answer["body"] };
    };
    const runOf = async (id: string) => (await (await fetch(`${daemon.url}/api/runs/${id}`, { headers })).json()) as Run;
    return { daemon, letGo, send, runOf };
  }
  type Send = (agent: string, id: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>;

  test("refuses one more for an agent that has too much waiting; others are taken as ever, and nothing that was taken is lost", {
    timeout: 60_000,
  }, async () => {
    const { send, runOf, letGo } = await start();
    const taken: string[] = [];
    let refused: Answer | undefined;
    for (let message = 0; refused === undefined; message++) {
      const answer = await send("main", `m${message}`);
      if (answer.status === 202) taken.push(answer.body.runId);
      else refused = answer;
      // Three of four slots run; five may wait beside them.
      expect(taken.length).toBeLessThanOrEqual(8);
      if (message < 3) await vi.waitFor(async () => expect((await runOf(taken[message] as string)).status).toBe("running"), 15_000);
    }
    expect(taken).toHaveLength(8);
    expect(refused).toMatchObject({ status: 429, body: { error: { code: "request.busy" } } });
    expect(Number(refused.retryAfter)).toBeGreaterThanOrEqual(1);
    expect(refused.body.error.message).toContain("limits.waiting_per_agent");

    expect((await send("other", "o1")).status).toBe(202);
    // The message that was taken first is known, however full it is.
    expect(await send("main", "m0")).toMatchObject({ status: 202, body: { runId: taken[0], duplicate: true } });
    // A refusal is no answer to keep for its key.
    expect((await send("main", "keyed", { "idempotency-key": "k" })).status).toBe(429);

    letGo();
    for (const id of taken) await vi.waitFor(async () => expect((await runOf(id)).status).toBe("completed"), 20_000);
    expect((await send("main", "again")).status).toBe(202);
    expect((await send("main", "keyed", { "idempotency-key": "k" })).status).toBe(202);
  });

  test("refuses one more when too much waits in all, whoever it is for, and takes it when there is room again", {
    timeout: 60_000,
  }, async () => {
    const { send, runOf, letGo } = await start();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, message) => send(["main", "other", "third", "fourth"][message % 4] as string, `m${message}`)),
    );
    const taken = answers.filter((answer) => answer.status === 202).map((answer) => answer.body.runId);
    const refused = answers.filter((answer) => answer.status === 429);
    expect(taken.length + refused.length).toBe(40);
    // Four run and twelve wait; on PostgreSQL those who came at the very same time may be more.
    expect(taken.length).toBeGreaterThanOrEqual(12);
    if (kind === "SQLite") expect(taken.length).toBeLessThanOrEqual(16);
    for (const { retryAfter, body } of refused) {
      expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
      expect(body.error.code).toBe("request.busy");
    }
    letGo();
    for (const id of taken) await vi.waitFor(async () => expect((await runOf(id)).status).toBe("completed"), 20_000);
    await vi.waitFor(async () => expect((await send("main", `late${Math.random()}`)).status).toBe(202), 15_000);
  });
});
