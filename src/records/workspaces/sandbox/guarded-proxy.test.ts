import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { type networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GuardedProxy, guardedProxy, mayReach } from "./guarded-proxy.ts";

const folder = mkdtempSync(join(tmpdir(), "guildhall-guard-"));
const path = join(folder, "socket");
let proxy: GuardedProxy;
let far: Server;
let reply = "";

beforeAll(async () => {
  proxy = await guardedProxy(path, { resolve: async () => ["127.0.0.1"], mayReach: () => true });
  far = createServer((socket) => {
    socket.on("error", () => {});
    // It says what it has to say, and hangs up.
    socket.once("data", () => socket.end(reply, "latin1"));
  });
  await new Promise<void>((resolve) => far.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await proxy.close();
  far.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What a program is told, until nothing more comes. */
function asked(first: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let text = "";
    socket.on("data", (data) => {
      text += data;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
    socket.write(first);
  });
}

const get = (): Promise<string> =>
  asked(`GET http://public.example:${(far.address() as AddressInfo).port}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);

test.each([
  ["a number that is no status", "HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n"],
  ["another protocol than was asked for", "HTTP/1.1 101 Switching\r\nupgrade: odd\r\nconnection: upgrade\r\n\r\nodd"],
  ["something that is not HTTP", "odd\r\n\r\n"],
  ["nothing at all", ""],
])("a host that answers %s is told of as one that does not answer, and harms nobody", async (_, words) => {
  reply = words;
  expect(await get()).toContain("502 Bad Gateway");
});

test.each([
  ["with a length", "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\npart"],
  ["in pieces", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n"],
])("an answer that breaks off (%s) breaks off for the program too, instead of keeping it waiting", async (_, words) => {
  reply = words;
  const told = await get();
  expect(told).toContain("200 OK");
  expect(told).not.toMatch(/0\r\n\r\n$/);
});

test("a long answer comes whole to a program that reads slowly, though the host has hung up", async () => {
  reply = `HTTP/1.1 200 OK\r\n\r\n${"x".repeat(3_000_000)}`;
  const socket = connect(path).pause();
  socket.write(`GET http://public.example:${(far.address() as AddressInfo).port}/ HTTP/1.0\r\nhost: a\r\n\r\n`);
  await sleep(300);
  let text = "";
  for await (const piece of socket) text += piece;
  expect(text.match(/x/g)?.length).toBeGreaterThanOrEqual(3_000_000);
});

test("public addresses of this machine are not reached, however they are written", () => {
  const one = { netmask: "", mac: "", internal: false, cidr: null };
  const interfaces: ReturnType<typeof networkInterfaces> = {
    eth0: [
      { ...one, address: "93.184.216.34", family: "IPv4" },
      { ...one, address: "2606:2800:220:1::1", family: "IPv6", scopeid: 0 },
    ],
  };
  for (const own of ["93.184.216.34", "::ffff:93.184.216.34", "::ffff:5db8:d822", "2606:2800:220:1::1", "2606:2800:0220:0001:0:0:0:1"])
    expect(mayReach(own, interfaces), own).toBe(false);
  for (const other of ["93.184.216.35", "2606:2800:220:1::2"]) expect(mayReach(other, interfaces), other).toBe(true);
});

test("names are looked up one at a time, and no more once the program is over", async () => {
  let [now, most, all] = [0, 0, 0];
  const resolve = async (): Promise<string[]> => {
    most = Math.max(most, ++now);
    all++;
    await sleep(100);
    now--;
    return [];
  };
  const slow = await guardedProxy(join(folder, "slow"), { resolve, mayReach: () => true });
  for (let index = 0; index < 20; index++) {
    const socket = connect(join(folder, "slow")).on("error", () => {});
    socket.write(`CONNECT host${index}.example:443 HTTP/1.1\r\n\r\n`);
  }
  await sleep(250);
  await slow.close();
  await sleep(300);
  expect(most).toBe(1);
  expect(all).toBeLessThan(6);
});

test("what is no request to a proxy is refused in words", async () => {
  expect(await asked("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).toContain("expected http://<host>/");
});
