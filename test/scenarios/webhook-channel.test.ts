import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { Run } from "../../src/contract/wire.ts";
import { createGuildhall, type Guildhall, type GuildhallConfig } from "../../src/library/index.ts";
import { modelServer, type Script } from "../model-server.ts";
import { type WebhookStandIn, webhookStandIn } from "../platforms/webhook.ts";

const SOON = { timeout: 10_000, interval: 20 };

interface House {
  readonly daemon: Guildhall;
  readonly platform: WebhookStandIn;
  readonly requests: Awaited<ReturnType<typeof modelServer>>["requests"];
}

async function house(script: Script, account: Record<string, unknown> = {}, more: GuildhallConfig = {}): Promise<House> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-webhook-"));
  const platform = await webhookStandIn();
  const model = await modelServer(script);
  const config: GuildhallConfig = {
    providers: { test: { type: "openai-compatible", base_url: model.url } },
    model: "test/any",
    channels: { webhook: { ...platform.account, allow: ["7"], ...account } },
    ...more,
  };
  const daemon = await createGuildhall({ home, config, log: "error" });
  platform.attach(daemon.url);
  onTestFinished(async () => {
    await daemon.stop();
    await Promise.all([platform.close(), model.close()]);
    rmSync(home, { recursive: true, force: true });
  });
  return { daemon, platform, requests: model.requests };
}

const posted = async (answer: Promise<Response>): Promise<{ id: string; runId: string | null }> => {
  const response = await answer;
  expect(response.status).toBe(202);
  return (await response.json()) as { id: string; runId: string | null };
};

const runOf = async ({ url, token }: Guildhall, id: string | null): Promise<Run> =>
  (await (await fetch(`${url}/api/runs/${id}`, { headers: { authorization: `Bearer ${token}` } })).json()) as Run;

test("a signed post is answered by a signed post, and the official library of Standard Webhooks understands both", async () => {
  const { platform, requests } = await house((_request, count) => `answer ${count + 1}`);
  expect(await posted(platform.post({ chat: "7", peer: "7", text: "hello" }, { id: "msg_1" }))).toEqual({
    id: "msg_1",
    runId: expect.any(String),
  });
  await expect.poll(() => platform.accepted.length, SOON).toBe(1);
  expect(platform.accepted[0]).toMatchObject({ chat: "7", topic: null, text: "answer 1", answers: null });

  // The same message, posted again under another id of the post; and a key that is being changed.
  const other = `whsec_${randomBytes(32).toString("base64")}`;
  const body = { id: "m2", chat: "room", peer: "7", text: "and in a group?", chat_type: "group", mentions: true, topic: "t1", name: "Ada" };
  expect(await posted(platform.post(body))).toEqual(await posted(platform.post(body)));
  await expect.poll(() => platform.shown("room", "t1").length, SOON).toBe(1);
  expect(platform.shown("room", "t1")[0]).toMatchObject({ text: "answer 2", answers: "m2" });
  expect(JSON.stringify(requests.at(-1)?.body.messages)).toContain("[Ada (webhook:7)] and in a group?");
  expect((await platform.post({ chat: "7", peer: "7", text: "x" }, { secret: other })).status).toBe(401);
  expect(platform.complaints).toEqual([]);
  expect(requests.length).toBe(2);
});

test("what the receiver says is heeded: it waits, it sends again under the same id, it gives up", async () => {
  const { platform } = await house((_request, count) => `answer ${count + 1}`);
  platform.trouble("rate limit");
  await platform.say("one");
  await expect.poll(() => platform.shown("7").length, SOON).toBe(1);
  platform.trouble("lose answer");
  await platform.say("two");
  // Accepted the first time: whoever receives knows it by its id and shows it once.
  await expect.poll(() => platform.requests.filter(({ body }) => body.text === "answer 2").length, SOON).toBe(2);
  expect(platform.shown("7").map(({ text }) => text)).toEqual(["answer 1", "answer 2"]);
  platform.trouble("server error");
  await platform.say("three");
  await expect.poll(() => platform.shown("7").length, SOON).toBe(3);
  platform.trouble("gone");
  await platform.say("four");
  await expect.poll(() => platform.requests.filter(({ body }) => body.text === "answer 4").length, SOON).toBe(1);
  await platform.say("five");
  await expect.poll(() => platform.shown("7").map(({ text }) => text), SOON).toEqual(["answer 1", "answer 2", "answer 3", "answer 5"]);
  expect(platform.requests.filter(({ body }) => body.text === "answer 4").length).toBe(1);
  expect(platform.complaints).toEqual([]);
});

test("without an address to post to, replies are collected over the API", async () => {
  const { platform, daemon } = await house(() => "collected", { url: undefined });
  const { runId } = await posted(platform.post({ chat: "7", peer: "7", text: "hello" }));
  await expect.poll(async () => (await runOf(daemon, runId)).reply?.text, SOON).toBe("collected");
  // A committed reply has arrived: there is nothing on its way that could be waited for.
  expect((await runOf(daemon, runId)).status).toBe("completed");
  using database = new DatabaseSync(join(daemon.home, "state.db"), { readOnly: true });
  expect(database.prepare("select count(*) as count from outbox").get()).toEqual({ count: 0 });
  const file = { id: "f", name: "f", media_type: "text/plain" };
  const refused = await platform.post({ chat: "7", peer: "7", text: "", files: [file] });
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining("files: ")]);
  expect(platform.requests).toEqual([]);
});

test("files come from the operator's program into the workspace, asked for with a signature", async () => {
  const { platform, daemon, requests } = await house(() => "thanks", { max_file_mb: 1 });
  const data = new Uint8Array(randomBytes(1_000));
  const large = new Uint8Array(1_048_577);
  await platform.say("look", {
    files: [
      { name: "small.bin", mediaType: "application/octet-stream", data },
      { name: "large.bin", mediaType: "application/octet-stream", data: large },
    ],
    quotes: { text: "words of somebody else", forwarded: true },
  });
  await expect.poll(() => platform.shown("7").length, SOON).toBe(1);
  const inbox = join(daemon.home, "agents/main/workspace/inbox");
  const [name, ...others] = readdirSync(inbox);
  expect(others).toEqual([]);
  expect(readFileSync(join(inbox, name ?? "")).equals(data)).toBe(true);
  const told = JSON.stringify(requests[0]?.body.messages);
  expect(told).toContain("forwarded from somebody else");
  expect(told).toContain("max_file_mb");
  expect(platform.complaints).toEqual([]);
});

test("a post that is not in the documented form is refused with the names of its fields", async () => {
  const { platform } = await house(() => "never");
  const refused = async (body: unknown): Promise<string[]> => {
    const answer = await platform.post(body);
    expect(answer.status).toBe(422);
    const { error } = (await answer.json()) as { error: { code: string; details: { problems?: { path: string }[] } } };
    expect(error.code).toBe("request.malformed");
    return (error.details.problems ?? []).map(({ path }) => path);
  };
  expect(await refused({ peer: 7, text: "x", chat_type: "crowd" })).toEqual(["chat", "peer", "chat_type"]);
  expect(await refused({ chat: "c", peer: "7", text: " " })).toEqual(["text"]);
  expect(await refused({ chat: "c", peer: "7", text: "x", admin: true })).toEqual([""]);
  expect(await refused({ chat: "c", peer: "7", text: "x", files: [{ id: "a b", name: "x", media_type: "y" }] })).toEqual([
    "files.0.id",
    "files.0.media_type",
  ]);
  await refused("{");
  await refused('{"chat":"c","peer":"7","text":"x","__proto__":{"roles":["admin"]}}');
  await refused("[".repeat(100_000));
});

test("each account has a secret and an address of its own; what is not there answers like anything unknown", async () => {
  const home = await webhookStandIn();
  onTestFinished(() => home.close());
  const above = { secret: undefined, url: undefined, allow: ["7"] };
  const { platform: work, daemon } = await house(() => "yes", { ...above, accounts: { home: home.account } });
  home.attach(daemon.url);
  const body = { chat: "7", peer: "7", text: "x" };
  expect((await work.post(body, { account: "home" })).status).toBe(401);
  await posted(home.post(body, { account: "home" }));
  await expect.poll(() => home.accepted.length, SOON).toBe(1);
  const unknown = await Promise.all(
    ["webhook", "webhook/work", "webhook/", "telegram", "toString", "%E0%A4%A", "webhook/%zz"].map(async (path) => {
      const answer = await fetch(`${daemon.url}/hooks/${path}`, { method: "POST", body: "{}" });
      return [answer.status, ((await answer.json()) as { error: { code: string } }).error.code];
    }),
  );
  expect(new Set(unknown.map(String))).toEqual(new Set(["404,request.not_found"]));
  expect(work.accepted).toEqual([]);
});
