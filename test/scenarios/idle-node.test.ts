import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { type Daemon, startDaemon } from "../../src/daemon/daemon.ts";
import { type TelegramStandIn, telegramStandIn } from "../platforms/telegram.ts";
import { countStatements, type StatementCounter } from "../statement-counter.ts";
import { postgresPlace } from "../stores.ts";

const WATCHED_MS = 3_000;
/** Two a second, and as many as may fall into the time by chance: a beat, a renewal and a look that lie at both of its ends. */
const MOST = 2 * (WATCHED_MS / 1_000) + 3;
const WHILE = { timeout: 30_000 };

let daemon: Daemon | undefined;
let counter: StatementCounter | undefined;
let telegram: TelegramStandIn | undefined;
const home = mkdtempSync(join(tmpdir(), "guildhall-idle-"));
const place = postgresPlace();
afterEach(async () => {
  await daemon?.stop();
  await telegram?.close();
  await counter?.close();
  await place.remove();
  rmSync(home, { recursive: true, force: true });
});

test("a node with nothing to do asks PostgreSQL at most twice a second, with an account on a platform too, and is quiet again after a message", async () => {
  telegram = await telegramStandIn();
  counter = await countStatements(place.location);
  const config = { store: counter.url, agents: { main: {} }, channels: { telegram: { ...telegram.account, allow: ["*"] } } };
  writeFileSync(join(home, "guildhall.yaml"), JSON.stringify(config));
  daemon = await startDaemon({ home, name: "idle", port: 0, logLevel: "error" });
  const { url, operatorToken } = daemon;
  const headers = { authorization: `Bearer ${operatorToken}` };
  const connected = async (): Promise<boolean> => {
    const { channels } = (await (await fetch(`${url}/api/channels`, { headers })).json()) as { channels: { state: string }[] };
    return channels.every(({ state }) => state === "connected");
  };
  await expect.poll(connected, WHILE).toBe(true);
  const message = { id: "1", platform: "test", chat: "c", peer: "p", chat_type: "dm", text: "hello" };
  const sent = await fetch(`${url}/api/messages`, { method: "POST", body: JSON.stringify(message), headers });
  const { runId } = (await sent.json()) as { runId: string };
  expect(await (await fetch(`${url}/api/runs/${runId}/live`, { headers })).text()).toContain('"status":"completed"');
  // What the message has left behind is told, sealed and made findable; then there is nothing more to do.
  const quietly = async (): Promise<number> => {
    counter?.forget();
    await sleep(WATCHED_MS);
    return counter?.total() ?? 0;
  };
  await expect.poll(quietly, WHILE).toBeLessThanOrEqual(MOST);
  // It is there, and looks.
  expect(counter.total()).toBeGreaterThanOrEqual(2);
});
