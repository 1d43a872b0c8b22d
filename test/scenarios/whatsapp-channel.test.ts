import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ChannelView } from "../../src/contract/channels.ts";
import { createGuildhall, type Guildhall } from "../../src/library/index.ts";
import { modelServer, type Script } from "../model-server.ts";
import { type WhatsAppStandIn, whatsappStandIn } from "../platforms/whatsapp.ts";

const SOON = { timeout: 15_000, interval: 20 };

interface House {
  readonly daemon: Guildhall;
  readonly platform: WhatsAppStandIn;
  readonly requests: Awaited<ReturnType<typeof modelServer>>["requests"];
}

async function house(script: Script, account: Record<string, unknown> = {}): Promise<House> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-whatsapp-"));
  const platform = await whatsappStandIn();
  const model = await modelServer(script);
  const daemon = await createGuildhall({
    home,
    config: {
      providers: { test: { type: "openai-compatible", base_url: model.url } },
      model: "test/any",
      channels: { whatsapp: { ...platform.account, allow: ["7", "US.13491208655302741918"], ...account } },
    },
    log: "warn",
  });
  platform.attach(daemon.url);
  onTestFinished(async () => {
    await daemon.stop();
    await Promise.all([platform.close(), model.close()]);
    rmSync(home, { recursive: true, force: true });
  });
  return { daemon, platform, requests: model.requests };
}

const stateOf = async ({ url, token }: Guildhall): Promise<ChannelView | undefined> => {
  const answer = await fetch(`${url}/api/channels`, { headers: { authorization: `Bearer ${token}` } });
  return ((await answer.json()) as { channels: ChannelView[] }).channels[0];
};

/** What the agent was told last, as one text. */
const told = ({ requests }: House): string => JSON.stringify(requests.at(-1)?.body.messages.at(-1));

/** What the daemon in this process writes to the error stream from now on. */
function logged(): () => string {
  let text = "";
  const spy = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  onTestFinished(() => spy.mockRestore());
  return () => text;
}

test("people write, in private and in groups, with and without a number to show; each is answered where they wrote", async () => {
  const here = await house((_request, count) => (count === 0 ? `*${"x".repeat(5_000)}*` : `answer ${count + 1}`));
  const { platform } = here;
  await platform.say("hello");
  await expect.poll(() => platform.shown("7").length, SOON).toBe(2);
  expect(platform.shown("7").every(({ raw }) => raw.length <= 4_096)).toBe(true);

  const inGroup = await platform.say("and here?", { group: "group1", mentions: true });
  await platform.say("nobody asks you", { group: "group1" });
  await expect.poll(() => platform.shown("group1").length, SOON).toBe(1);
  expect(platform.shown("group1")[0]).toMatchObject({ text: "answer 2", answers: inGroup });
  expect(told(here)).toContain("[Ada (whatsapp:7)] and here?");
  await expect.poll(() => platform.marks.get(inGroup), SOON).toBe("✅");

  platform.deliver(
    { from: undefined, from_user_id: "US.13491208655302741918", type: "text", text: { body: "hi" } },
    { peer: "US.13491208655302741918" },
  );
  await expect.poll(() => platform.shown("US.13491208655302741918").length, SOON).toBe(1);

  await platform.say("what do you mean?", { answers: platform.shown("group1")[0]?.id as string, group: "group1" });
  await expect.poll(() => platform.shown("group1").length, SOON).toBe(2);
  expect(told(here)).toContain(String.raw`[in answer to: \"answer 2\"]`);
  await platform.say("", { quotes: { text: "/new", forwarded: true } });
  await expect.poll(() => platform.shown("7").length, SOON).toBe(3);
  expect(told(here)).toContain(String.raw`[forwarded from somebody else: \"/new\"]`);
  expect(platform.complaints).toEqual([]);
  await expect.poll(async () => (await stateOf(here.daemon))?.name, SOON).toBe("Guildhall +1 555-078-3881");
});

test("files and voice notes come into the workspace, also where they are all that was sent", async () => {
  const here = await house(() => "thanks", { max_file_mb: 1 });
  const { platform, daemon } = here;
  const voice = new Uint8Array(randomBytes(2_000));
  await platform.say("", { files: [{ name: "", mediaType: "audio/ogg; codecs=opus", data: voice }] });
  await expect.poll(() => platform.shown("7").length, SOON).toBe(1);
  expect(told(here)).toContain("voice.ogg: audio/ogg");
  const inbox = join(daemon.home, "agents/main/workspace/inbox");
  const [name] = readdirSync(inbox);
  expect(readFileSync(join(inbox, name ?? "")).equals(voice)).toBe(true);

  await platform.say("and this", { files: [{ name: "big.pdf", mediaType: "application/pdf", data: new Uint8Array(1_048_577) }] });
  await expect.poll(() => platform.shown("7").length, SOON).toBe(2);
  expect(readdirSync(inbox)).toEqual([name]);
  expect(JSON.stringify(here.requests.at(-1)?.body.messages)).toContain("big.pdf is not there");
  platform.deliver({ type: "contacts", contacts: [{ name: { formatted_name: "Grace Hopper" }, phones: [{ phone: "+1 555 0100" }] }] });
  platform.deliver({ type: "location", location: { latitude: 52.5, longitude: 13.4, name: "Berlin" } });
  await expect.poll(() => platform.shown("7").length, SOON).toBe(4);
  expect(JSON.stringify(here.requests.at(-1)?.body.messages)).toContain("Grace Hopper +1 555 0100");
  expect(JSON.stringify(here.requests.at(-1)?.body.messages)).toContain("location: 52.5 13.4 Berlin");
  expect(platform.complaints).toEqual([]);
});

test("an agent sends files in the kinds that WhatsApp knows; what it does not take is refused with the reason", async () => {
  const { platform, daemon } = await house([
    { calls: ["notes.md", "archive.zip"].map((path) => ({ tool: "file_write", args: { path, content: `in ${path}` } })) },
    { calls: [{ tool: "message_send", args: { text: "here", files: ["notes.md"] } }] },
    { calls: [{ tool: "message_send", args: { text: "", files: ["archive.zip"] } }] },
    "done",
  ]);
  const events = await fetch(`${daemon.url}/api/events?after=0`, { headers: { authorization: `Bearer ${daemon.token}` } });
  await platform.say("send me the notes");
  await expect.poll(() => platform.shown("7").map(({ text, file }) => file?.name ?? text), SOON).toEqual(["here", "notes.md", "done"]);
  expect(Buffer.from(platform.shown("7")[1]?.file?.data ?? []).toString()).toBe("in notes.md");
  let ledger = "";
  for await (const chunk of events.body ?? []) {
    ledger += Buffer.from(chunk).toString();
    if (ledger.includes("reply.refused")) break;
  }
  expect(ledger).toContain("WhatsApp does not take files such as archive.zip (application/zip)");
  expect(platform.complaints).toEqual([]);
});

test("one post tells of many things: ours are taken, each once, and those of another number are not", async () => {
  const { platform, requests } = await house((_request, count) => `answer ${count + 1}`);
  const log = logged();
  await platform.say("first");
  await expect.poll(() => platform.accepted.length, SOON).toBe(1);
  const message = (id: string, body: string) => ({ from: "7", id, timestamp: "1", type: "text", text: { body } });
  const failed = {
    id: platform.accepted[0]?.id,
    status: "failed",
    recipient_id: "7",
    errors: [{ code: 131_047, title: "Re-engagement message", error_data: { details: "More than 24 hours have passed" } }],
  };
  const value = {
    messages: [
      message("wamid.a", "one"),
      { id: 7 },
      { from: "7", id: "wamid.r", type: "reaction", reaction: { message_id: "wamid.a", emoji: "x" } },
      { from: "7", id: "wamid.u", type: "unsupported" },
      message("wamid.b", "two"),
    ],
    statuses: [failed, { id: "wamid.x", status: "delivered" }, "nonsense"],
  };
  const post = platform.postOf(value) as { entry: { changes: unknown[] }[] };
  post.entry[0]?.changes.push({ field: "account_update", value: { event: "x" } }, null);
  for (let times = 0; times < 2; times++) expect((await platform.post(post)).status).toBe(200);
  expect((await platform.post(platform.postOf({ messages: [message("wamid.c", "not ours")] }, "99"))).status).toBe(200);
  expect((await platform.post({ object: "page" })).status).toBe(200);
  await expect.poll(() => platform.accepted.length, SOON).toBeGreaterThanOrEqual(3);
  await platform.say("last");
  await expect.poll(() => JSON.stringify(requests.at(-1)?.body.messages.at(-1)), SOON).toContain("last");
  const all = JSON.stringify(requests.at(-1)?.body.messages);
  expect(all.match(/"(first|one|two|last)"/g)?.map((word) => word.slice(1, -1))).toEqual(["first", "one", "two", "last"]);
  expect(all).not.toContain("not ours");
  expect(log()).toContain("More than 24 hours have passed");
});

test("what WhatsApp refuses is refused with its reason, what it asks to wait for waits, and what nobody knows follows the policy", async () => {
  const { platform, daemon } = await house((_request, count) => `answer ${count + 1}`);
  const texts = (): string[] => platform.shown("7").map(({ text }) => text);
  const events = await fetch(`${daemon.url}/api/events?after=0`, { headers: { authorization: `Bearer ${daemon.token}` } });
  let ledger = "";
  void (async () => {
    for await (const chunk of events.body ?? []) ledger += Buffer.from(chunk).toString();
  })().catch(() => {});
  platform.trouble("rate limit");
  await platform.say("one");
  await expect.poll(texts, SOON).toEqual(["answer 1"]);
  platform.trouble("server error");
  await platform.say("two");
  await expect.poll(texts, SOON).toEqual(["answer 1", "answer 2"]);
  platform.trouble("gone");
  await platform.say("three");
  await expect.poll(() => ledger, SOON).toContain("Message undeliverable");
  platform.trouble("lose answer");
  await platform.say("four");
  // At least once: where nobody knows, it is sent again, and the books say so.
  await expect.poll(texts, SOON).toEqual(["answer 1", "answer 2", "answer 4", "answer 4"]);
  expect(ledger).toContain("reply.unclear");
  expect(platform.complaints).toEqual([]);
});

test("a day after the last message nobody can be written to, and the reason says so", async () => {
  const { platform, daemon } = await house([{ text: "too late", delayMs: 1_000 }]);
  const events = await fetch(`${daemon.url}/api/events?after=0`, { headers: { authorization: `Bearer ${daemon.token}` } });
  const id = await platform.say("hello");
  platform.closeWindow("7");
  let ledger = "";
  for await (const chunk of events.body ?? []) {
    ledger += Buffer.from(chunk).toString();
    if (ledger.includes("reply.refused")) break;
  }
  expect(ledger).toContain("only within 24 hours");
  expect(platform.typingFor).toEqual([id]);
  expect(platform.accepted).toEqual([]);
});

test("a token that has ended is the account's trouble: it is told without the token, and the reply waits for a better one", async () => {
  const log = logged();
  const { platform, daemon } = await house(() => "patience", {});
  await expect.poll(async () => (await stateOf(daemon))?.state, SOON).toBe("connected");
  platform.trouble("bad token");
  await platform.say("hello");
  await expect.poll(async () => (await stateOf(daemon))?.waiting, SOON).toBe(1);
  platform.trouble("none");
  await expect.poll(() => platform.shown("7").map(({ text }) => text), SOON).toEqual(["patience"]);
  const other = await house(() => "never", { token: "wrong-token-of-somebody" });
  await expect.poll(async () => (await stateOf(other.daemon))?.state, SOON).toBe("refused");
  const state = await stateOf(other.daemon);
  expect(state?.problem).toContain("Malformed access token");
  expect(JSON.stringify(state) + log()).not.toContain("wrong-token-of-somebody");
});
