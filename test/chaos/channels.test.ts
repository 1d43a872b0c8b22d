import { expect, inject, test } from "vitest";
import { CHANNEL_POINTS, channelsChaos } from "./channels-chaos.ts";
import { checkChannels } from "./channels-check.ts";

/** The short form of `npm run chaos -- channels`. */
test("E2 E3 E4 L7: killed around everything that comes and goes, every message is answered or refused with a reason, and what is shown twice is in the books", {
  timeout: 120_000,
}, async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  console.log(`channels chaos: seed ${seed}`);
  const kills = CHANNEL_POINTS.length;
  const report = await channelsChaos({ database: "sqlite", kills, seed, postgresUrl: inject("postgresUrl"), progress: () => {} });
  expect(report.problems, `seed ${seed}`).toEqual([]);
  const { answered = 0, "refused, with a reason": refused = 0, "given up, as recorded": givenUp = 0 } = report.counts;
  expect(answered + refused + givenUp).toBe(report.messages);
  expect(answered).toBeGreaterThan(0);
});

test("the check of the channels finds what is lost, repeated, out of order, or in the wrong chat", () => {
  const said = [
    { word: "w1", chat: "1" },
    { word: "w2", chat: "1" },
    { word: "w3", chat: "2" },
  ];
  const shown = (...texts: [string, string][]) =>
    texts.map(([chat, text]) => ({ chat, text, id: "", topic: null, raw: text, answers: null, file: null, edits: 0 }));
  const none = { refused: [], unclear: [], abandoned: [], failed: [] };
  const all = (...order: [string, string][]) => shown(...order.map(([chat, word]): [string, string] => [chat, `${word} is heard.`]));
  expect(checkChannels(said, all(["1", "w1"], ["2", "w3"], ["1", "w2"]), none).problems).toEqual([]);
  expect(checkChannels(said, all(["1", "w1"], ["2", "w3"]), { ...none, refused: ["w2"] }).problems).toEqual([]);
  expect(checkChannels(said, all(["1", "w1"], ["1", "w1"], ["1", "w2"], ["2", "w3"]), { ...none, unclear: ["w1"] }).problems).toEqual([]);
  const found = (list: ReturnType<typeof all>): string => checkChannels(said, list, none).problems.join("; ");
  expect(found(all(["1", "w1"], ["2", "w3"]))).toContain("w2 in chat 1 was not answered");
  expect(found(all(["1", "w1"], ["1", "w2"], ["1", "w2"], ["2", "w3"]))).toContain("w2 was shown 2 times");
  expect(found(all(["1", "w2"], ["1", "w1"], ["2", "w3"]))).toContain('"w2 is heard." came where');
  expect(found(all(["1", "w1"], ["1", "w2"], ["1", "w3"]))).toContain("w3 was answered in another chat");
});
