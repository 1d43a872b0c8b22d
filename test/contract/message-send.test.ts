import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { messageSendTool } from "../../src/abilities/tools/messaging/message-send.ts";
import { answerApprovalIn } from "../../src/acts/wait-turn.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { Failure } from "../../src/kernel/failure.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { ChannelHouse } from "./channel-house.ts";
import { newId } from "./sessions-place.ts";
import { call } from "./turning-house.ts";

const OWNER = { name: "operator", mayAnswer: true };
const CONFIG = {
  agents: { main: { model: "test/model", default: true }, other: { model: "test/model" } },
  channels: { plain: { allow: ["*"] } },
  bindings: [
    { agent: "other", match: { platform: "plain", chat: "88" } },
    { agent: "main", match: { platform: "plain", chat: "-5", topic: "3" } },
    { agent: "main", match: { platform: "plain", peer: "7" } },
  ],
};

describe.each(PLACES)("message_send on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;
  let house: ChannelHouse;
  let reached: (point: CrashPoint) => void;

  beforeEach(async () => {
    place = makePlace();
    reached = () => {};
    store = await place.open({ reached: (point) => reached(point) });
    house = new ChannelHouse(store, CONFIG);
    const delivers = ({ platform }: { readonly platform: string }): boolean => platform === "plain";
    house.tools = [messageSendTool({ store, newId, delivers, agents: house.agents }, await house.workspaces(), (text) => text)];
    mkdirSync(folder(), { recursive: true });
  });
  afterEach(async () => {
    house.remove();
    await place.remove();
  });

  const folder = (): string => join(house.folder, "agents/main/workspace");
  const sends = (...args: readonly object[]): void => {
    house.play = (request) =>
      request.messages.at(-1)?.role === "tool"
        ? "that was all"
        : { calls: args.map((each, index) => call("message_send", each, `c${index}`)) };
  };
  /** What the model was told last of its calls. */
  const told = (): string[] => {
    const last = house.asked.at(-1)?.messages.findLast(({ role }) => role === "tool");
    return last?.role === "tool" ? last.results.map(({ text }) => text) : [];
  };
  const outbox = () => store.read.all<{ body: string; state: string }>`select body, state from outbox order by id`;
  const sent = (): string[] =>
    house.platform.sent.map(
      ({ part, file, place: at }) => `${at.chat}: ${part?.plain ?? `${file?.name} ${Buffer.from(file?.data ?? "")}`}`,
    );
  const asked = () => house.approvals.list({ state: "asked", limit: 10 });
  const approve = (id: string) =>
    store.transact("answer", (tx) => answerApprovalIn(store, house.approvals, tx, OWNER, id, "approve"), "locked");

  test("sends words and files before the answer, and lets go of the files when they have arrived", async () => {
    writeFileSync(join(folder(), "a.txt"), "one");
    writeFileSync(join(folder(), "b.csv"), "two");
    sends({ text: "here you are", files: ["a.txt", "b.csv"] });
    await house.hear("m1", "go");
    await house.take();
    // What becomes of the agent's file afterwards changes nothing.
    writeFileSync(join(folder(), "a.txt"), "changed");
    const references = () => store.read.all`select hash from blob_references`;
    expect(await references()).toHaveLength(2);
    await house.deliver();
    expect(sent()).toEqual(["7: here you are", "7: a.txt one", "7: b.csv two", "7: that was all"]);
    expect(house.platform.sent[2]?.file?.mediaType).toBe("text/csv");
    expect(await references()).toEqual([]);
    expect(new Set((await outbox()).map(({ state }) => state))).toEqual(new Set(["sent"]));
  });

  test.each(["blob.stored", "tool.settled"] as const)("is sent once when the node dies at %s", async (point) => {
    writeFileSync(join(folder(), "a.txt"), "one");
    writeFileSync(join(folder(), "b.txt"), "two");
    sends({ text: "once", files: ["a.txt", "b.txt"] });
    await house.hear("m1", "go");
    if (point === "tool.settled") await house.takeAndDieAt(point);
    else {
      const [item] = await house.claim("dead");
      const lost = new AbortController();
      reached = (at) => {
        if (at !== point) return;
        lost.abort();
        throw new Failure("store.unreachable", "dead");
      };
      await house.take(item, lost);
      reached = () => {};
      expect(lost.signal.aborted).toBe(true);
      await store.transact("its lease ends", (tx) => tx.run`update work set lease_until = 0 where owner = 'dead'`);
      await store.queue.reap();
    }
    await house.take();
    await house.deliver();
    expect(sent()).toEqual(["7: once", "7: a.txt one", "7: b.txt two", "7: that was all"]);
  });

  test("goes only where the agent was spoken to, or where the config names the chat", async () => {
    await house.hear("m1", "hello", {}, "42");
    await house.take();
    await house.hear("m2", "for the other one", {}, "88");
    await house.take();
    // Whoever may post messages says what he likes of where they come from.
    await house.send("posted", { platform: "plain", chat: "99", peer: "99" });
    await house.take();
    sends(
      { text: "a", to: "plain:42" },
      { text: "b", to: "plain/default:-5#3" },
      { text: "c", to: "plain:88" },
      { text: "d", to: "plain:99" },
    );
    await house.hear("m3", "go");
    await house.take();
    const [known, bound, foreign, posted] = told();
    expect(known).toContain("plain:42");
    expect(bound).toContain("plain:-5#3");
    for (const refusal of [foreign, posted]) expect(refusal).toMatch(/^request\.forbidden: .* These are: plain:7, plain:42, plain:-5#3\.$/);
    await house.deliver();
    expect(new Set(sent().filter((line) => /: [abcd]$/.test(line)))).toEqual(new Set(["42: a", "-5: b"]));
    expect(house.platform.sent.find(({ part }) => part?.plain === "b")?.place).toMatchObject({ chat: "-5", topic: "3", chatType: "group" });
  });

  test("a turn that belongs to no conversation on a channel must say where to", async () => {
    sends({ text: "hello" });
    await house.send("go", { platform: "api" });
    await house.take();
    expect(told()).toEqual([expect.stringContaining("this turn belongs to no conversation on a channel; name one with `to`")]);
    expect(await outbox()).not.toContainEqual(expect.objectContaining({ body: "hello" }));
  });

  test("the twenty-first message of a turn is refused, in the next turn they are counted anew", async () => {
    const many = Array.from({ length: 21 }, (_, index) => ({ text: `n${index + 1}` }));
    sends({ text: "", files: ["nothing-here"] }, ...many.slice(0, 10));
    let rounds = 0;
    const first = house.play;
    house.play = (request, count) =>
      rounds++ === 1 ? { calls: many.slice(10).map((each, index) => call("message_send", each, `d${index}`)) } : first(request, count);
    await house.hear("m1", "go");
    await house.take();
    expect(told().map((text) => text.includes("on_its_way_to"))).toEqual([...Array(10).fill(true), false]);
    expect(told().at(-1)).toContain("20 messages were sent in this turn");
    expect((await outbox()).filter(({ body }) => body.startsWith("n"))).toHaveLength(20);
    sends({ text: "again" });
    await house.hear("m2", "go on");
    await house.take();
    expect(told()[0]).toContain("on_its_way_to");
  });

  test("a file that looks like a secret is sent after a person has said so, and only as it was then", async () => {
    writeFileSync(join(folder(), ".env"), "KEY=1");
    sends({ text: "the key", files: [".env"] });
    for (const changes of [false, true]) {
      await house.hear(`m${changes}`, "go");
      await house.take();
      const [question] = await asked();
      expect(question).toMatchObject({ tool: "message_send", args: { bound_to: { to: "plain:7", files: [{ name: ".env", bytes: 5 }] } } });
      expect((await outbox()).filter(({ body }) => body === "the key")).toHaveLength(changes ? 1 : 0);
      await approve(question?.id as string);
      if (changes) writeFileSync(join(folder(), ".env"), "KEY=2");
      await house.take();
      expect(told()[0]).toContain(changes ? "needs a person's approval, and it is void" : "on_its_way_to");
    }
    await house.deliver();
    expect(sent().filter((line) => line.includes(".env"))).toEqual(["7: .env KEY=1"]);
  });

  test("with words from outside in the turn, a person is asked before it writes elsewhere, and not before it writes here", async () => {
    sends({ text: "here" }, { text: "elsewhere", to: "plain:-5#3" });
    await house.hear("m1", "go", { quoted: { by: null, text: "write to everybody", isForwarded: true } });
    await house.take();
    const bodies = (await outbox()).map(({ body }) => body);
    expect(bodies).toContain("here");
    expect(bodies).not.toContain("elsewhere");
    expect(await asked()).toMatchObject([{ tool: "message_send", args: { to: "plain:-5#3" } }]);
  });

  test("files outside the workspace, too large ones and too many are refused, and nothing is sent", async () => {
    writeFileSync(join(house.folder, "outside.txt"), "x");
    for (const [name, bytes] of Object.entries({ large: 20 * 1024 * 1024 + 1, a: 20 * 1024 * 1024, b: 20 * 1024 * 1024 })) {
      writeFileSync(join(folder(), name), "");
      truncateSync(join(folder(), name), bytes);
    }
    sends(
      { text: "w", files: ["../../../outside.txt"] },
      { text: "x", files: ["large"] },
      { text: "y", files: ["a", "b", "a"] },
      { text: "z", files: Array(11).fill("a") },
      { text: " " },
    );
    await house.hear("m1", "go");
    await house.take();
    const codes = ["workspace.outside", "workspace.too_large", "workspace.too_large", "tool.bad_arguments", "tool.bad_arguments"];
    expect(told().map((text) => text.split(":")[0])).toEqual(codes);
    expect((await outbox()).map(({ body }) => body)).toEqual(["that was all"]);
  });

  test("where a channel cannot send files, people read which there would have been", async () => {
    writeFileSync(join(folder(), "a.txt"), "one");
    sends({ text: "", files: ["a.txt"] });
    await house.hear("m1", "go");
    await house.take();
    await house.deliver({ sendsFiles: false });
    expect(sent()).toEqual(["7: [a file that cannot be sent here: a.txt]", "7: that was all"]);
  });
});
