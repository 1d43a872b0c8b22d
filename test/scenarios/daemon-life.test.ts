import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migratedPostgresPlace } from "../stores.ts";
import { tcpProxy } from "../tcp-proxy.ts";
import { Home } from "./guildhall.ts";

/** Ten seconds on a machine with nothing else to do; whoever waits for a connection to end does it for longer than this. */
const PATIENCE_MS = 20_000;

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.remove());

test("a start says where it listens, who answers and where the data is", async () => {
  const daemon = await home.start({ bare: true });
  expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);
  const file = JSON.parse(readFileSync(join(home.path, "daemon.json"), "utf8"));
  expect(file).toMatchObject({ url: daemon.url, pid: expect.any(Number), version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
  expect(statSync(join(home.path, "operator.token")).mode & 0o777).toBe(0o600);
  const { stdout } = await daemon.kill("SIGTERM");
  expect(JSON.parse(stdout)).toMatchObject({ agents: [{ id: "main", model: "offline/demo", scripted: true }], channels: [] });
  expect(existsSync(join(home.path, "daemon.json"))).toBe(false);
});

test("two daemons on one home are impossible: the second says who is there, exits 2, and touches nothing", async () => {
  const daemon = await home.start();
  const { runId } = await daemon.send({ id: "1" });
  const second = await home.run(["start", "--port", "0"]);
  expect(second).toMatchObject({ code: 2, stdout: "" });
  expect(second.stderr).toContain(`a daemon already runs on ${home.path}`);
  expect(second.stderr).toContain(daemon.url);
  expect(second.stderr).toContain("[daemon.already_running]\n  Stop the other daemon first");
  expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);
  // It would take a daemon that died for one that runs, and the other way round.
  expect((await daemon.finished(runId)).status).toBe("completed");
  expect((await daemon.finished((await daemon.send({ id: "2" })).runId)).status).toBe("completed");
  await daemon.kill("SIGKILL");
  const next = await home.start();
  expect((await next.run(runId)).status).toBe("completed");
  await next.kill("SIGTERM");
  using db = new DatabaseSync(join(home.path, "state.db"), { readOnly: true });
  expect(db.prepare("pragma integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  expect(db.prepare("select count(*) as lives from ledger where type = 'daemon.started'").get()).toEqual({ lives: 2 });
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s stops within 10 s, with streams and idle connections open", async (signal) => {
  const daemon = await home.start();
  const events = await daemon.fetch("/api/events");
  const idle = connect(Number(new URL(daemon.url).port), "127.0.0.1");
  idle.on("error", () => {});
  await sleep(50);
  const begun = performance.now();
  const { code } = await daemon.kill(signal);
  expect(performance.now() - begun).toBeLessThan(PATIENCE_MS);
  expect(code).toBe(0);
  await events.text().catch(() => {});
  idle.destroy();
});

test("SIGTERM stops within 10 s also when the database is gone", async () => {
  const place = await migratedPostgresPlace();
  const address = new URL(place.location);
  const database = await tcpProxy(Number(address.port));
  address.port = String(database.port);
  const orphan = new Home(`store: ${address}\n`);
  try {
    const daemon = await orphan.start();
    await daemon.finished((await daemon.send({ id: "1" })).runId);
    await database.close();
    const begun = performance.now();
    expect((await daemon.kill("SIGTERM")).code).toBe(0);
    expect(performance.now() - begun).toBeLessThan(PATIENCE_MS);
  } finally {
    await orphan.remove();
    await place.remove();
  }
});

test("what fails in a library where nobody listens is logged, and takes nobody down", async () => {
  const stray = "process.on('SIGUSR2', () => void Promise.reject(new Error('a stray failure')))";
  const daemon = await home.start({ flags: ["--import", `data:text/javascript,${stray}`] });
  void daemon.kill("SIGUSR2");
  for (let times = 0; times < 10; times++) expect((await daemon.fetch("/readyz")).status).toBe(200);
  const { code, stderr } = await daemon.kill("SIGTERM");
  expect([code, stderr]).toEqual([0, expect.stringContaining("a stray failure")]);
});

test("any bytes on the port are answered or cut off, and the daemon goes on", async () => {
  const daemon = await home.start();
  const port = Number(new URL(daemon.url).port);
  const attacks = [
    "\0\0\0\0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET //// HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST /api/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    `GET /${"x".repeat(100_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    `POST /api/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Length: 5\r\n\r\n{"a`,
  ];
  for (const bytes of attacks) {
    const answer = await new Promise<string>((resolve) => {
      let text = "";
      const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
      socket.on("data", (data) => {
        text += data;
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
    });
    expect(answer).not.toMatch(/ at .*\.ts|node:internal|HTTP\/1\.1 5/);
  }
  expect((await fetch(`${daemon.url}/readyz`)).status).toBe(200);
  expect((await daemon.kill("SIGTERM")).stderr).not.toMatch(/\n\s+at /);
});

const oldNode = ["/usr/bin/node", "/usr/local/bin/node"].find(
  (file) => existsSync(file) && Number(execFileSync(file, ["-p", "process.versions.node.split('.')[0]"], { encoding: "utf8" })) < 24,
);

// Skipped where every Node is new enough: there is nothing to hand over from.
test.skipIf(!oldNode)("an old Node hands over to the packaged one, with signals, exit codes and even kill -9", async () => {
  const node = oldNode as string;
  expect((await home.run(["chat", "-m", "hello"], { node })).stdout).toContain("Hello!");
  expect((await home.run(["nonsense"], { node })).code).toBe(2);
  expect((await (await home.start({ node })).kill("SIGTERM")).code).toBe(0);
  const daemon = await home.start({ node });
  await daemon.kill("SIGKILL");
  await expect
    .poll(
      () =>
        fetch(daemon.url).then(
          () => "answers",
          () => "silent",
        ),
      { timeout: 15_000 },
    )
    .toBe("silent");
  await (await home.start({ node })).kill("SIGTERM");
});
