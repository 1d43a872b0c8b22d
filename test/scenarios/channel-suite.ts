import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readServerSentEvents } from "../../src/client/server-sent-events.ts";
import type { ChannelView } from "../../src/contract/channels.ts";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { type ModelServer, modelServer, type SeenRequest } from "../model-server.ts";
import type { Shown, StandIn } from "../platforms/stand-in.ts";
import { webhookStandIn } from "../platforms/webhook.ts";
import { Home, type RunningDaemon } from "./guildhall.ts";

/** What a platform is like, where platforms differ. */
export interface PlatformPlan {
  start(): Promise<StandIn>;
  /** A group, as the platform writes it; absent: there are none. */
  readonly group?: string;
  /** Somebody who is not on the list. */
  readonly stranger: string;
  /** What was sent twice with one key is shown once. */
  readonly dedupes: boolean;
  /** It finds out at the start that its token is wrong. */
  readonly checksToken: boolean;
  /** Cuts the connection that messages come by; absent: there is none. */
  cut?(standIn: StandIn): Promise<void>;
}

const SOON = { timeout: 20_000, interval: 20 };
const LINES = 400;
const LONG = Array.from({ length: LINES }, (_, index) => `Line number ${index} of a long answer, with words in it.`).join("\n\n");
const CODE = "Look:\n\n```js\nif (a < b) {\n  run(a && b);\n}\n```\n\nDone.";

function answerOf({ body }: SeenRequest): string {
  const content = body.messages.at(-1).content;
  const said: string = typeof content === "string" ? content : JSON.stringify(content);
  if (said.includes("at length")) return LONG;
  if (said.includes("in code")) return CODE;
  const [, word = "nothing"] = /echo ([a-z0-9-]+)/.exec(said) ?? [];
  return `heard ${word}.`;
}

/**
 * What every platform must pass: a whole daemon, the platform's own client, and the platform itself on this machine, as strict as it is. One
 * daemon and one conversation after another: the tests build on each other.
 */
export function channelSuite(name: string, plan: PlatformPlan): void {
  describe(`the channel of ${name}`, () => {
    let standIn: StandIn;
    let other: StandIn;
    let model: ModelServer;
    let home: Home;
    let daemon: RunningDaemon;

    const start = async (): Promise<void> => {
      daemon = await home.start();
      standIn.attach(daemon.url);
      other.attach(daemon.url);
    };
    const restart = async (): Promise<void> => {
      await daemon.kill("SIGKILL");
      await start();
    };
    const shown = (word: string): readonly Shown[] => standIn.accepted.filter(({ text }) => text.includes(`heard ${word}.`));
    const ask = async (word: string, how: Parameters<StandIn["say"]>[1] = {}): Promise<void> => {
      await standIn.say(`echo ${word}`, how);
      await expect.poll(() => shown(word).length, { ...SOON, message: `an answer to ${word}` }).toBeGreaterThan(0);
    };
    const state = async (platform = standIn.platform): Promise<ChannelView | undefined> => {
      const { channels } = (await (await daemon.fetch("/api/channels")).json()) as { channels: ChannelView[] };
      return channels.find((view) => view.platform === platform);
    };
    const events = async (type: LedgerEvent["type"]): Promise<LedgerEvent[]> =>
      (await eventsUntilNow(daemon)).filter((event) => event.type === type);
    /** Nothing is on its way any more. */
    const settled = (): Promise<void> => expect.poll(async () => (await state())?.waiting, SOON).toBe(0);

    beforeAll(async () => {
      [standIn, other, model] = await Promise.all([plan.start(), webhookStandIn(), modelServer(answerOf)]);
      const common = { allow: ["7", "8"], receipts: "none", stream: false };
      const channels = { [standIn.platform]: { ...standIn.account, ...common } };
      const besides = standIn.platform === "webhook" ? {} : { webhook: { ...other.account, ...common } };
      const providers = { test: { type: "openai-compatible", base_url: model.url } };
      home = new Home(JSON.stringify({ providers, agents: { main: { model: "test/echo" } }, channels: { ...channels, ...besides } }));
      await start();
    });
    afterAll(async () => {
      await home.remove();
      await Promise.all([standIn.close(), other.close(), model.close()]);
    });

    test("connects, and answers what is said in private, in its order", async () => {
      await expect.poll(async () => (await state())?.state, SOON).toBe("connected");
      for (const word of ["a1", "a2", "a3"]) await standIn.say(`echo ${word}`);
      await ask("a4");
      const texts = standIn.accepted.map(({ text }) => text);
      expect(texts.map((text) => /heard (\w+)/.exec(text)?.[1])).toEqual(["a1", "a2", "a3", "a4"]);
    });

    test.runIf(plan.group)("answers in a group when it is called, and only then", async () => {
      const { group } = plan;
      await standIn.say("echo overheard", { group: group as string });
      await ask("called", { group: group as string, mentions: true });
      expect(shown("overheard")).toEqual([]);
      expect(shown("called")).toMatchObject([{ chat: group }]);
    });

    test("tells a stranger a code, and nothing of the agent", async () => {
      const before = model.requests.length;
      await standIn.say("echo secret", { peer: plan.stranger });
      const codes = (): readonly Shown[] => standIn.accepted.filter(({ text }) => /[A-Z2-9]{4}-[A-Z2-9]{4}/.test(text));
      await expect.poll(() => codes().length, SOON).toBe(1);
      await standIn.say("echo secret again", { peer: plan.stranger });
      await ask("after-the-stranger");
      expect(codes()).toHaveLength(1);
      expect(shown("secret")).toEqual([]);
      expect(model.requests.length).toBe(before + 1);
    });

    test("cuts a long answer where a message must end, in order, and loses no line", async () => {
      const before = standIn.accepted.length;
      await standIn.say("tell me at length");
      const words = (): number[] => standIn.accepted.slice(before).flatMap(({ text }) => numbersIn(text));
      await expect.poll(() => words().length, SOON).toBe(LINES);
      expect(words()).toEqual(Array.from({ length: LINES }, (_, index) => index));
      await settled();
    });

    test("keeps code as it is", async () => {
      await standIn.say("show me in code");
      await expect.poll(() => standIn.accepted.some(({ text }) => text.includes("if (a < b) {\n  run(a && b);\n}")), SOON).toBe(true);
    });

    test("waits as long as the platform asks, and tries again what it could not take: each is shown once", async () => {
      for (const [kind, word] of [
        ["rate limit", "limited"],
        ["server error", "broken"],
        ["cut", "unheard"],
      ] as const) {
        standIn.trouble(kind);
        await ask(word);
      }
      await settled();
      for (const word of ["limited", "broken", "unheard"]) expect(shown(word), word).toHaveLength(1);
    });

    test("an answer that is lost follows the policy, and the books say so", async () => {
      const before = (await events("reply.unclear")).length;
      standIn.trouble("lose answer");
      await ask("doubtful");
      await settled();
      expect(shown("doubtful")).toHaveLength(plan.dedupes ? 1 : 2);
      expect((await events("reply.unclear")).length - before).toBe(plan.dedupes ? 0 : 1);
    });

    test("a chat that does not take its messages is no other chat's trouble", async () => {
      standIn.trouble("gone", 1);
      await standIn.say("echo unwanted");
      await expect.poll(async () => (await events("reply.refused")).length, SOON).toBe(1);
      standIn.trouble("none");
      await ask("wanted", { peer: "8" });
      expect(shown("unwanted")).toEqual([]);
    });

    test.runIf(plan.cut)("comes back by itself when its connection was cut, and has missed nothing", async () => {
      await plan.cut?.(standIn);
      for (const word of ["c1", "c2"]) await standIn.say(`echo ${word}`);
      await ask("c3");
      await expect.poll(async () => (await state())?.state, SOON).toBe("connected");
      for (const word of ["c1", "c2", "c3"]) expect(shown(word), word).toHaveLength(1);
    });

    test("killed and started again: nothing is lost, and nothing is said twice that was known to be said", async () => {
      const before = (await events("reply.unclear")).length;
      await daemon.kill("SIGKILL");
      for (const word of ["d1", "d2", "d3"]) await standIn.say(`echo ${word}`);
      await start();
      await expect.poll(() => shown("d3").length, SOON).toBe(1);
      for (let index = 0; index < 4; index++) await standIn.say(`echo e${index}`, { peer: index % 2 ? "7" : "8" });
      await expect.poll(() => shown("e0").length, SOON).toBeGreaterThan(0);
      await restart();
      for (let index = 0; index < 4; index++) await expect.poll(() => shown(`e${index}`).length, SOON).toBeGreaterThan(0);
      await ask("f1");
      await settled();
      const times = ["d1", "d2", "d3", "e0", "e1", "e2", "e3", "f1"].map((word) => shown(word).length);
      const again = times.reduce((sum, count) => sum + count - 1, 0);
      expect(again).toBeLessThanOrEqual((await events("reply.unclear")).length - before);
      if (plan.dedupes) expect(again).toBe(0);
    });

    test.runIf(plan.checksToken)("a wrong token is shown as refused, other accounts go on, and a right one helps", async () => {
      await daemon.kill("SIGKILL");
      standIn.trouble("bad token");
      await start();
      await expect.poll(async () => (await state())?.state, SOON).toBe("refused");
      expect((await state())?.problem).not.toBeNull();
      expect(JSON.stringify(await state())).not.toContain(String(standIn.account.token));
      for (let index = 0; index < 3; index++) {
        await other.say(`echo w${index}`);
        await expect.poll(() => other.accepted.some(({ text }) => text === `heard w${index}.`), SOON).toBe(true);
      }
      standIn.trouble("none");
      await restart();
      await expect.poll(async () => (await state())?.state, SOON).toBe("connected");
      await ask("let-in-again");
    });

    test("has broken no rule of the platform", () => {
      expect(standIn.complaints).toEqual([]);
      expect(other.complaints).toEqual([]);
    });
  });
}

/** Everything that the ledger says. */
export async function eventsUntilNow(daemon: RunningDaemon): Promise<LedgerEvent[]> {
  // An event of its own marks what now is.
  const posted = await daemon.fetch("/api/mail", { method: "POST", body: JSON.stringify({ to: "nobody", type: "mark", content: "" }) });
  const { id: mark } = (await posted.json()) as { id: string };
  const stop = new AbortController();
  const response = await daemon.fetch("/api/events?after=0", { signal: stop.signal });
  const events: LedgerEvent[] = [];
  for await (const { data } of readServerSentEvents(response.body as ReadableStream<Uint8Array>)) {
    events.push(JSON.parse(data) as LedgerEvent);
    if (data.includes(mark)) break;
  }
  stop.abort();
  return events;
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/Line number (\d+) of/g)].map(([, number]) => Number(number));
}
