import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";

const MIB = 1024 * 1024;
const SLOW = { timeout: 90_000 };
/** Whoever had to wait for those that never end would wait until they are hung up on, which is longer. */
const HEALTH_MS = 8_000;
/** What the daemon may take beyond what it needs at rest, whatever is thrown at it. */
const MEMORY_MIB = 250;

let home: Home;
let daemon: RunningDaemon;
const sockets: Socket[] = [];

beforeAll(async () => {
  home = new Home();
  daemon = await home.start();
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => home.remove());

async function memoryMib(): Promise<number> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1]) / MIB;
}

/** The slowest of several looks, each on a connection of its own. */
async function slowestHealthMs(): Promise<number> {
  let slowest = 0;
  for (let look = 0; look < 10; look++) {
    const began = performance.now();
    const answer = await fetch(`${daemon.url}/healthz`, { headers: { connection: "close" } });
    expect(answer.status).toBe(200);
    slowest = Math.max(slowest, performance.now() - began);
  }
  return slowest;
}

async function open(text: string): Promise<Socket> {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on("error", () => {});
  await new Promise<void>((resolve) => {
    socket.once("connect", resolve);
    socket.once("close", () => resolve());
  });
  socket.write(text);
  return socket;
}

test("50 MB: refused, declared or not, and not kept in memory", async () => {
  const before = await memoryMib();
  const large = Buffer.alloc(50 * MIB, "x");
  const declared = await daemon.fetch("/api/messages", { method: "POST", body: large });
  expect(declared.status).toBe(413);
  const endless = ReadableStream.from(Array.from({ length: 50 }, () => large.subarray(0, MIB)));
  // The daemon answers and hangs up; a client in the middle of sending may see either.
  const undeclared = await daemon
    .fetch("/api/messages", { method: "POST", body: endless, duplex: "half" } as RequestInit)
    .then((answer) => answer.status)
    .catch(() => 413);
  expect(undeclared).toBe(413);
  expect((await memoryMib()) - before).toBeLessThan(MEMORY_MIB);
  expect(await slowestHealthMs()).toBeLessThan(HEALTH_MS);
});

test.each([
  ["lists", "[", "]"],
  ["maps", '{"a":', "}"],
])("JSON of 100,000 levels of %s: refused at once", async (_kind, open, close) => {
  const answer = await daemon.fetch("/api/messages", { method: "POST", body: `${open.repeat(100_000)}1${close.repeat(100_000)}` });
  expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([422, "request.malformed"]);
});

test("2,000 connections that send half a request: the others are served, memory stays, and they are hung up on", SLOW, async () => {
  const before = await memoryMib();
  const half = "POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
  for (let index = 0; index < 2_000; index += 100) await Promise.all(Array.from({ length: 100 }, () => open(half)));
  const dripping = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write("x");
  }, 500);
  try {
    expect(await slowestHealthMs()).toBeLessThan(HEALTH_MS);
    expect((await daemon.send({ id: "meanwhile" })).duplicate).toBe(false);
    expect((await memoryMib()) - before).toBeLessThan(MEMORY_MIB);
    const openNow = (): number => sockets.filter((socket) => !socket.closed).length;
    expect(openNow()).toBeLessThanOrEqual(1_024);
    await expect.poll(openNow, { timeout: 40_000, interval: 500 }).toBe(0);
  } finally {
    clearInterval(dripping);
  }
});

test("bodies that never end hold nothing up, and those without a token are hung up on at once", async () => {
  const head = "POST /api/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n";
  const nobody = await open(`${head}\r\n{`);
  const hungUp = new Promise<void>((resolve) => nobody.once("close", () => resolve()));
  nobody.resume();
  for (let index = 0; index < 200; index++) await open(`${head}Authorization: Bearer ${daemon.token}\r\n\r\n{`);
  expect((await daemon.send({ id: "past the slow ones", text: "x".repeat(500_000) })).duplicate).toBe(false);
  expect(await slowestHealthMs()).toBeLessThan(HEALTH_MS);
  await hungUp;
});

test.each([
  ["noise", Buffer.from("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".repeat(50), "latin1"), 422],
  ["endless headers", `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${"y".repeat(100_000)}\r\n\r\n`, 413],
  ["a Host that is none", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 422],
  ["two lengths", "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 422],
])("%s gets an answer of the common shape", async (_kind, bytes, status) => {
  const socket = await open("");
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(bytes);
  await expect.poll(() => answer).toContain("}");
  socket.end();
  await closed;
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))).error).toMatchObject({ retry: "never", details: {} });
  expect(answer).not.toMatch(/\bat |node:|\.ts/);
});

test("no more streams per token than allowed; closing one makes room", async () => {
  const made = await daemon.fetch("/api/tokens", { method: "POST", body: JSON.stringify({ scope: "read" }) });
  const { token } = (await made.json()) as { token: string };
  // Kept: an answer that nobody refers to is closed by the garbage collector.
  const open: Response[] = [];
  const follow = async (): Promise<number> => {
    const answer = await fetch(`${daemon.url}/api/events`, { headers: { authorization: `Bearer ${token}` } });
    open.push(answer);
    return answer.status;
  };
  for (let index = 0; index < 500; index++) expect(await follow()).toBe(200);
  expect(await follow()).toBe(429);
  expect((await daemon.fetch("/healthz")).status).toBe(200);
  await open[0]?.body?.cancel();
  await expect.poll(follow).toBe(200);
  for (const answer of open) if (!answer.bodyUsed) await answer.body?.cancel();
});
