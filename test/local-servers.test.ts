import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { findLocalModel } from "../src/abilities/models/local-servers.ts";
import { configSchema } from "../src/contract/config.ts";
import { NO_MODEL_KEYS } from "../src/settings/model-keys.ts";

const servers: { close(): unknown; closeAllConnections?(): void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections?.();
    server.close();
  }
});

async function listing(body: string, status = 200): Promise<string> {
  const server: Server = createServer((_, response) => response.writeHead(status).end(body));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Takes connections, and says nothing. */
async function silent(): Promise<string> {
  const server = createTcpServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const models = (...ids: string[]) => JSON.stringify({ object: "list", data: ids.map((id) => ({ id })) });
const NOWHERE = "http://127.0.0.1:1";
const find = (ollama: string, lmstudio: string) =>
  findLocalModel({
    config: configSchema.parse({ providers: { ollama: { base_url: ollama }, lmstudio: { base_url: `${lmstudio}/v1` } } }),
    modelKeys: NO_MODEL_KEYS,
  });

test("Ollama is found, and the first model that can talk", async () => {
  expect(await find(await listing(models("nomic-embed-text", "llama3.2:3b", "qwen3")), NOWHERE)).toEqual({
    name: "ollama/llama3.2:3b",
    server: "Ollama",
  });
});

test("LM Studio is found where there is no Ollama, or nothing in it", async () => {
  expect(await find(NOWHERE, await listing(models("qwen/qwen3-8b")))).toEqual({ name: "lmstudio/qwen/qwen3-8b", server: "LM Studio" });
  expect((await find(await listing(models()), await listing(models("x"))))?.server).toBe("LM Studio");
});

test("nobody there, something else there, or somebody who says nothing: no model, and nobody waits for it", async () => {
  expect(await find(NOWHERE, NOWHERE)).toBeNull();
  expect(await find(await listing("<html>"), await listing("{}", 404))).toBeNull();
  expect(await find(await silent(), await silent())).toBeNull();
});
