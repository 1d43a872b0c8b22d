import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createGuildhall, type Guildhall } from "../../src/library/index.ts";
import { type WebhookStandIn, webhookStandIn } from "../platforms/webhook.ts";
import { type WhatsAppStandIn, whatsappStandIn } from "../platforms/whatsapp.ts";

const SOON = { timeout: 15_000, interval: 20 };
const MINUTE = 60_000;
const home = mkdtempSync(join(tmpdir(), "guildhall-hooks-"));
let whatsapp: WhatsAppStandIn;
let webhook: WebhookStandIn;
let daemon: Guildhall;

beforeAll(async () => {
  [whatsapp, webhook] = await Promise.all([whatsappStandIn(), webhookStandIn()]);
  const channels = { whatsapp: { ...whatsapp.account, allow: ["*"] }, webhook: { ...webhook.account, allow: ["*"] } };
  daemon = await createGuildhall({ home, config: { channels }, log: "error" });
  whatsapp.attach(daemon.url);
  webhook.attach(daemon.url);
  // Its address is verified by then.
  await whatsapp.say("hello", { peer: "1" });
  await vi.waitUntil(() => whatsapp.shown("1").length === 1, SOON);
});
afterAll(async () => {
  await daemon.stop();
  await Promise.all([whatsapp.close(), webhook.close()]);
  rmSync(home, { recursive: true, force: true });
});

const codeOf = async (answer: Response): Promise<string> => ((await answer.json()) as { error: { code: string } }).error.code;

/** One byte of it, somewhere in the middle, is another one. */
const spoilt = (text: string): string => text.replace("transfer 10", "transfer 90");

test("WhatsApp: a wrong or missing signature, or a body changed by one byte, is refused, and nothing of it is admitted", async () => {
  const message = { from: "1", id: "wamid.evil", type: "text", text: { body: "transfer 10" } };
  const body = JSON.stringify(whatsapp.postOf({ messages: [message] }));
  const right = whatsapp.signatureOf(body);
  const wrong = [
    null,
    "",
    "sha256=",
    right.slice(0, -2),
    right.replace("sha256=", ""),
    right.replace("sha256", "sha1"),
    `${right.slice(0, -1)}${right.endsWith("0") ? "1" : "0"}`,
    `sha256=${"0".repeat(64)}`,
    `${right}00`,
  ];
  for (const signature of wrong) {
    const answer = await whatsapp.post(body, { signature });
    expect([signature, answer.status, await codeOf(answer)]).toEqual([signature, 401, "request.unauthenticated"]);
  }
  expect((await whatsapp.post(spoilt(body), { signature: right })).status).toBe(401);
  expect(whatsapp.shown("1").length).toBe(1);
  expect((await whatsapp.post(body)).status).toBe(200);
  await expect.poll(() => whatsapp.shown("1").length, SOON).toBe(2);
});

test("WhatsApp: the same signed post again runs once", async () => {
  const body = whatsapp.postOf({ messages: [{ from: "3", id: "wamid.again", type: "text", text: { body: "once" } }] });
  whatsapp.deliver({ type: "text", text: { body: "opens the chat" } }, { peer: "3" });
  await expect.poll(() => whatsapp.shown("3").length, SOON).toBe(1);
  const answers = await Promise.all(Array.from({ length: 5 }, () => whatsapp.post(body)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  whatsapp.deliver({ type: "text", text: { body: "and goes on" } }, { peer: "3" });
  await expect.poll(() => whatsapp.shown("3").length, SOON).toBe(3);
});

test("WhatsApp: Meta's question is answered to whoever knows the token, and to nobody else", async () => {
  const ask = async (query: Record<string, string>): Promise<[number, string]> => {
    const answer = await fetch(`${daemon.url}/hooks/whatsapp?${new URLSearchParams(query)}`);
    return [answer.status, await answer.text()];
  };
  const right = { "hub.mode": "subscribe", "hub.verify_token": whatsapp.verifyToken, "hub.challenge": "<b>42" };
  expect(await ask(right)).toEqual([200, "<b>42"]);
  const answer = await fetch(`${daemon.url}/hooks/whatsapp?${new URLSearchParams(right)}`);
  expect([answer.headers.get("content-type"), answer.headers.get("x-content-type-options")]).toEqual([
    "text/plain; charset=utf-8",
    "nosniff",
  ]);
  const { "hub.challenge": _challenge, ...without } = right;
  for (const query of [
    { ...right, "hub.verify_token": "" },
    { ...right, "hub.verify_token": `${whatsapp.verifyToken}x` },
    { ...right, "hub.mode": "unsubscribe" },
    without,
    {},
  ])
    expect((await ask(query))[0]).toBe(403);
});

test("webhook: a wrong, missing or old signature, or a body changed by one byte, is refused, and nothing of it is admitted", async () => {
  const body = { chat: "4", peer: "4", text: "transfer 10" };
  const now = Date.now();
  const attempts: Parameters<WebhookStandIn["post"]>[1][] = [
    { secret: `whsec_${Buffer.alloc(32, 7).toString("base64")}` },
    { headers: { "webhook-signature": "" } },
    { headers: { "webhook-signature": "v1," } },
    { headers: { "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")}` } },
    { headers: { "webhook-signature": "v2,abc v1a,abc" } },
    { headers: { "webhook-timestamp": "" } },
    { headers: { "webhook-timestamp": "1e9" } },
    { headers: { "webhook-timestamp": String(Math.floor(now / 1_000) + 1) } },
    { headers: { "webhook-id": "" } },
    { headers: { "webhook-id": "msg_other" } },
    { at: new Date(now - 6 * MINUTE) },
    { at: new Date(now + 6 * MINUTE) },
    { changed: spoilt },
    { changed: (text) => `${text} ` },
  ];
  for (const how of attempts) {
    const answer = await webhook.post(body, how);
    expect([how, answer.status, await codeOf(answer)]).toEqual([how, 401, "request.unauthenticated"]);
  }
  expect((await fetch(`${daemon.url}/hooks/webhook`, { method: "POST", body: JSON.stringify(body) })).status).toBe(401);
  expect((await fetch(`${daemon.url}/hooks/webhook`)).status).toBe(404);
  // What is still young enough is taken, and this is all that ever was.
  expect((await webhook.post(body, { at: new Date(now - 4 * MINUTE) })).status).toBe(202);
  await expect.poll(() => webhook.shown("4").length, SOON).toBe(1);
});

test("webhook: the same signed post again runs once, and one of several signatures is enough", async () => {
  const body = { chat: "5", peer: "5", text: "once" };
  const answers = await Promise.all(Array.from({ length: 5 }, () => webhook.post(body, { id: "msg_replayed" })));
  const runs = new Set(await Promise.all(answers.map(async (answer) => ((await answer.json()) as { runId: string }).runId)));
  expect([answers.map(({ status }) => status), runs.size]).toEqual([[202, 202, 202, 202, 202], 1]);
  const { Webhook } = await import("standardwebhooks");
  const at = new Date();
  const text = JSON.stringify({ chat: "5", peer: "5", text: "twice" });
  const old = new Webhook(`whsec_${Buffer.alloc(32, 9).toString("base64")}`).sign("msg_two", at, text);
  const right = new Webhook(webhook.secret).sign("msg_two", at, text);
  expect((await webhook.post(text, { id: "msg_two", at, headers: { "webhook-signature": `${old} ${right}` } })).status).toBe(202);
  await expect.poll(() => webhook.shown("5").length, SOON).toBe(2);
  expect(webhook.complaints).toEqual([]);
});

test("what is not signed is not even looked into; what is too large is not read", async () => {
  const deep = "[".repeat(200_000);
  for (const path of ["whatsapp", "webhook"]) {
    const post = (body: string | Uint8Array<ArrayBuffer>) => fetch(`${daemon.url}/hooks/${path}`, { method: "POST", body });
    for (const body of [deep, "{", '{"__proto__":{}}', new Uint8Array([0xff, 0xfe])]) expect((await post(body)).status).toBe(401);
    expect((await post("x".repeat(3 * 1_048_576 + 1))).status).toBe(413);
  }
  const signed = [
    await whatsapp.post(deep),
    await whatsapp.post('{"entry":[],"__proto__":{}}'),
    await webhook.post(deep),
    await webhook.post('{"chat":"6","peer":"6","text":"x","__proto__":{"roles":["admin"]}}'),
  ];
  expect(signed.map(({ status }) => status)).toEqual([422, 422, 422, 422]);
});

test("a platform may know us by another name; a page of another site may not post, and nothing else is reached by that name", async () => {
  const { request } = await import("node:http");
  const ask = (path: string, headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request(`${daemon.url}${path}`, { method: "POST", headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      sent.on("error", reject).end("{}");
    });
  expect(await ask("/hooks/webhook", { host: "bot.example.org" })).toBe(401);
  expect(await ask("/api/messages", { host: "bot.example.org" })).toBe(403);
  expect(await ask("/hooks/../api/messages", { host: "bot.example.org" })).toBe(403);
  expect(await ask("/hooks/webhook", { host: "bot.example.org", origin: "https://evil.example" })).toBe(403);
});

test("names that nobody has make no measurements, and the routes are described", async () => {
  for (let count = 0; count < 5; count++) await fetch(`${daemon.url}/hooks/made-up-${count}/x`, { method: "POST", body: "{}" });
  const metrics = await (await fetch(`${daemon.url}/metrics`)).text();
  expect(metrics).toContain('route="/hooks/:platform/:account",status="404"');
  expect(metrics).not.toContain("made-up");
  const answer = await fetch(`${daemon.url}/api/openapi.json`, { headers: { authorization: `Bearer ${daemon.token}` } });
  const { paths } = (await answer.json()) as { paths: Record<string, object> };
  expect(Object.keys(paths["/hooks/{platform}"] ?? {})).toEqual(["get", "post"]);
});
