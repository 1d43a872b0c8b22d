import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { SendTrouble } from "../../src/kernel/channel.ts";
import { createGuildhall, type Guildhall } from "../../src/library/index.ts";
import { type ModelServer, modelServer } from "../model-server.ts";
import { PlainPlatform } from "../plain-channel.ts";

const SOON = { timeout: 10_000, interval: 10 };
const WORDS = Array.from({ length: 40 }, (_, index) => `${index > 0 ? " " : ""}word${index}`);
const REPLY = WORDS.join("");
const slow = (text: readonly string[] = WORDS) => ({ text, chunkDelayMs: 15 });

/** Edits as often as it likes, and shows that somebody types. */
function editing(): PlainPlatform {
  const platform = new PlainPlatform();
  platform.abilities = { dedupes: false, reacts: true, sendsFiles: true, editEveryMs: 20, typingMs: 50 };
  platform.edits = async () => {};
  return platform;
}

describe("while a turn runs", () => {
  const platform = editing();
  const mute = new PlainPlatform();
  const home = mkdtempSync(join(tmpdir(), "guildhall-streaming-"));
  let models: ModelServer;
  let house: Guildhall;
  let count = 0;
  const screen = (of = platform): string[] => [...of.screen.values()];
  const say = (text: string, to = platform): Promise<void> => to.say(`m${++count}`, text);

  beforeAll(async () => {
    models = await modelServer();
    house = await createGuildhall({
      home,
      config: {
        providers: { test: { type: "openai-compatible", base_url: models.url } },
        agents: { main: { model: "test/any", default: true, tools: { ask: ["file_write"] } } },
        channels: { plain: { allow: ["7"], receipts: "all" }, mute: { allow: ["7"], receipts: "all" } },
      },
      channels: [platform.plugin(), mute.plugin("mute")],
      log: "error",
    });
  });
  beforeEach(() => {
    for (const each of [platform, mute]) {
      each.screen.clear();
      for (const list of [each.history, each.typed, each.marks]) list.length = 0;
    }
    platform.maxLength = Number.POSITIVE_INFINITY;
    platform.edits = async () => {};
  });
  afterAll(async () => {
    await house.stop();
    await models.close();
    rmSync(home, { recursive: true, force: true });
  });

  test("its words grow in one message, which ends as exactly the reply; people see that somebody types, and that they were heard", async () => {
    models.play([slow()]);
    await say("write");
    await expect.poll(() => screen(), SOON).toEqual([REPLY]);
    const [first, ...edits] = platform.history;
    expect(first?.isEdit).toBe(false);
    expect(edits.length).toBeGreaterThan(1);
    expect(edits.every(({ isEdit, id }) => isEdit && id === first?.id)).toBe(true);
    for (const { text } of platform.history.slice(0, -1)) expect(REPLY.startsWith(text.replace(/ …$/, ""))).toBe(true);
    expect(platform.history.slice(0, -1).every(({ text }) => text.endsWith(" …"))).toBe(true);
    expect(platform.typed.length).toBeGreaterThan(1);
    expect(new Set(platform.typed)).toEqual(new Set(["7"]));
    await expect.poll(() => platform.marks, SOON).toEqual([`m${count} seen`, `m${count} done`]);
    // The turn is over: nobody types any more.
    const typed = platform.typed.length;
    models.play([{ text: "quick", delayMs: 300 }]);
    await say("again");
    await expect.poll(() => screen().at(-1), SOON).toBe("quick");
    expect(platform.typed.length).toBeLessThan(typed + 5);
  });

  test("of an answer that comes at once nobody is told before that somebody types", async () => {
    models.play((_request, number) => `answer ${number}`);
    let said = 0;
    // On a busy machine nothing comes at once; told of every answer, it is told of this one too.
    do {
      await say("quick");
      await expect.poll(() => screen().length, SOON).toBe(++said);
    } while (platform.typed.length >= said && said < 20);
    expect(platform.typed.length).toBeLessThan(said);
  });

  test("of a long reply the beginning is shown; the rest follows, in its order", async () => {
    platform.maxLength = 100;
    models.play([slow()]);
    await say("write at length");
    await expect.poll(() => screen().join(""), SOON).toBe(REPLY);
    expect(screen().length).toBeGreaterThan(2);
    const [first] = platform.history;
    expect(platform.history.filter(({ isEdit }) => isEdit).every(({ id }) => id === first?.id)).toBe(true);
  });

  test("a call is shown in a word; what was said before it makes room for the answer", async () => {
    models.play([{ text: ["Let me ", "look."], calls: [{ tool: "todo", args: {} }], chunkDelayMs: 60 }, slow()]);
    await say("look");
    await expect.poll(() => screen(), SOON).toEqual([REPLY]);
    expect(platform.history[0]?.text).toMatch(/^Let me/);
  });

  test("a turn that is stopped leaves what it has shown, and says so; an edit that comes late changes nothing", async () => {
    const late = Promise.withResolvers<void>();
    let waits = 0;
    platform.edits = async ({ part }) => {
      if (!part?.text.endsWith("…")) return;
      waits++;
      await late.promise;
    };
    models.play([{ ...slow(), hangAfter: 20 }]);
    await say("write");
    await expect.poll(() => waits, SOON).toBe(1);
    await say("/stop");
    await expect.poll(() => screen()[0], SOON).toMatch(/^word0[^…]*\(stopped\)$/s);
    const stopped = screen()[0];
    late.resolve();
    await expect.poll(() => platform.history.filter(({ text }) => text === stopped).length, SOON).toBe(2);
    expect(screen()[0]).toBe(stopped);
    await expect.poll(() => screen().at(-1), SOON).toBe("Stopped.");
    await expect.poll(() => platform.marks.at(-1), SOON).toBe(`m${count - 1} null`);
  });

  test("a turn that waits for a person says so, and one that is stopped then says that", async () => {
    models.play([{ text: ["I will ", "write it."], calls: [{ tool: "file_write", args: { path: "a", content: "b" } }], chunkDelayMs: 80 }]);
    await say("write a file");
    await expect.poll(() => screen()[0], SOON).toBe("I will write it.\n\n(waiting)");
    await say("/stop");
    await expect.poll(() => screen()[0], SOON).toMatch(/^I will.*\n\n\(stopped\)$/);
    await expect.poll(() => screen().at(-1), SOON).toBe("Stopped.");
  });

  test("a turn that fails turns what it has shown into a word about that", async () => {
    models.play((_request, number) => (number === 0 ? { ...slow(), cutAfter: 20 } : { status: 400, error: "no" }));
    await say("write");
    await expect.poll(() => screen(), SOON).toEqual([expect.stringContaining("I could not answer this")]);
    expect(platform.history[0]?.text).toMatch(/^word0/);
    await expect.poll(() => platform.marks.at(-1), SOON).toBe(`m${count} failed`);
  });

  test("an answer without words does not leave half a sentence on the screen", async () => {
    models.play([{ text: WORDS.slice(0, 10), calls: [{ tool: "todo", args: {} }], chunkDelayMs: 15 }, { text: "" }]);
    await say("write");
    await expect.poll(() => screen()[0] ?? "…", SOON).not.toContain("…");
    expect(screen()).toHaveLength(1);
  });

  test("a platform that takes no edits meanwhile gets the reply all the same, and the turn does not wait for it", async () => {
    let tried = 0;
    platform.edits = async ({ part }) => {
      if (!part?.text.endsWith("…")) return;
      tried++;
      throw new SendTrouble("refused", "not now");
    };
    models.play([slow()]);
    await say("write");
    await expect.poll(() => screen(), SOON).toEqual([REPLY]);
    expect(tried).toBe(1);
  });

  test("a draft that is not taken is not missed", async () => {
    platform.onSend = async ({ part }) => {
      if (part?.text.endsWith("…")) throw new SendTrouble("refused", "no");
    };
    models.play([slow()]);
    await say("write");
    await expect.poll(() => screen(), SOON).toEqual([REPLY]);
    expect(platform.history).toHaveLength(1);
    platform.onSend = async () => {};
  });

  test("where nothing can be edited there is one message, at the end", async () => {
    models.play([slow()]);
    await say("write", mute);
    await expect.poll(() => screen(mute), SOON).toEqual([REPLY]);
    expect(mute.history).toHaveLength(1);
    expect([mute.typed, mute.marks]).toEqual([[], []]);
  });
});
