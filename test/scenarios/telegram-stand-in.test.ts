import { expect, onTestFinished, test } from "vitest";
import { type TelegramOptions, type TelegramStandIn, telegramStandIn } from "../platforms/telegram.ts";

type Answer = { ok: boolean; error_code?: number; description?: string; result?: unknown; parameters?: Record<string, unknown> };

async function bot(
  options: TelegramOptions = {},
): Promise<[TelegramStandIn, (method: string, fields?: object, token?: string) => Promise<Answer>]> {
  const telegram = await telegramStandIn(options);
  onTestFinished(() => telegram.close());
  const { token, api_url } = telegram.account;
  return [
    telegram,
    async (method, fields = {}, as = String(token)) => {
      const headers = { "content-type": "application/json" };
      return (await (
        await fetch(`${api_url}/bot${as}/${method}`, { method: "POST", headers, body: JSON.stringify(fields) })
      ).json()) as Answer;
    },
  ];
}

test("it refuses what the Bot API refuses, in the same words", async () => {
  const [telegram, call] = await bot();
  const theirs = Number(await telegram.say("hello"));
  const html = (text: string): Promise<Answer> => call("sendMessage", { chat_id: 7, text, parse_mode: "HTML" });
  expect(await call("getMe", {}, "4242:AAanotherTokenThatNobodyHas_012345")).toMatchObject({ error_code: 401 });
  expect(await call("getMe", {}, "nonsense")).toMatchObject({ error_code: 404 });
  expect(await call("getUs")).toMatchObject({ error_code: 404 });
  expect((await html("<b>a")).description).toBe(`Bad Request: can't parse entities: Can't find end tag corresponding to start tag "b"`);
  expect((await html("a <p>b</p>")).description).toBe(`Bad Request: can't parse entities: Unsupported start tag "p" at byte offset 2`);
  expect((await html("<b>ü<i>x</b></i>")).description).toContain(`Unmatched end tag at byte offset 9, expected "</i>", found "</b>"`);
  expect((await html("a < b")).description).toContain(`Unsupported start tag ""`);
  expect((await html("</b>")).description).toContain("Unexpected end tag");
  expect(await html(`<b>${"&amp;".repeat(4_096)}</b>`)).toMatchObject({ ok: true });
  expect((await html("&amp;".repeat(4_097))).description).toBe("Bad Request: message is too long");
  expect((await html("<b> </b>")).description).toBe("Bad Request: message text is empty");
  expect((await call("sendMessage", { chat_id: 8, text: "x" })).description).toBe("Bad Request: chat not found");
  expect((await call("sendMessage", { chat_id: 7, text: "x", message_thread_id: 1 })).description).toBe(
    "Bad Request: message thread not found",
  );
  const answering = { chat_id: 7, text: "x", reply_parameters: { message_id: 9_999 } };
  expect((await call("sendMessage", answering)).description).toBe("Bad Request: message to be replied not found");
  expect((await call("editMessageText", { chat_id: 7, message_id: theirs, text: "x" })).description).toBe(
    "Bad Request: message can't be edited",
  );
  const marked = { chat_id: 7, message_id: theirs, reaction: [{ type: "emoji", emoji: "✅" }] };
  expect((await call("setMessageReaction", marked)).description).toBe("Bad Request: REACTION_INVALID");
  expect(telegram.complaints).toHaveLength(4);
});

test("updates come until they are confirmed, to one poller at a time, and only those that were asked for", async () => {
  const [telegram, call] = await bot();
  for (const text of ["one", "two"]) await telegram.say(text);
  const poll = async (fields: object = {}): Promise<{ update_id: number }[]> => (await call("getUpdates", fields)).result as never;
  const [first, second] = await poll();
  expect(await poll({ limit: 1 })).toEqual([first]);
  expect(await poll({ offset: second?.update_id })).toEqual([second]);
  expect(await poll()).toEqual([second]);
  const next = { offset: (second?.update_id ?? 0) + 1, timeout: 50, allowed_updates: ["message"] };
  const older = call("getUpdates", next);
  await expect.poll(() => telegram.updates.unconfirmed).toBe(0);
  const newer = call("getUpdates", next);
  expect(await older).toMatchObject({ error_code: 409, description: expect.stringContaining("terminated by other getUpdates request") });
  telegram.deliver(telegram.chat("7"), { text: "a post" }, "edited_message");
  await telegram.say("three");
  expect(await newer).toMatchObject({ ok: true, result: [{ message: { text: "three" } }] });
  telegram.updates.webhook = "https://example.org/";
  expect(await call("getUpdates")).toMatchObject({ error_code: 409, description: expect.stringContaining("webhook is active") });
  expect(telegram.complaints).toEqual(["two poll at once", "polls while a webhook is set"]);
});

test("a chat takes a message in a second where it is told to, and who does not wait is noticed", async () => {
  const [telegram, call] = await bot({ perChatMs: 1_000 });
  for (const peer of ["7", "8"]) await telegram.say("hello", { peer });
  const send = (chat: number): Promise<Answer> => call("sendMessage", { chat_id: chat, text: "x" });
  expect(await send(7)).toMatchObject({ ok: true });
  expect(await send(7)).toMatchObject({ error_code: 429, parameters: { retry_after: 1 } });
  expect(await send(8)).toMatchObject({ ok: true });
  expect(telegram.complaints).toEqual([]);
  expect(await send(7)).toMatchObject({ error_code: 429 });
  expect(telegram.complaints).toEqual([expect.stringContaining("does not wait")]);
});
