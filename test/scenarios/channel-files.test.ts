import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ChatFile } from "../../src/kernel/channel.ts";
import { createGuildhall } from "../../src/library/index.ts";
import { modelServer, type SeenRequest } from "../model-server.ts";
import { PlainPlatform } from "../plain-channel.ts";

const SOON = { timeout: 10_000, interval: 20 };
const PNG = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.from("a picture")]);

test("files come in over a channel, are seen by a model that can, and go out again", async () => {
  const platform = new PlainPlatform();
  let path = "";
  const server = await modelServer((request) => {
    const { messages } = request.body;
    if (messages.at(-1).role === "tool") return "There it is.";
    path = /\[file (inbox\/\S+picture\.bin):/.exec(JSON.stringify(messages))?.[1] ?? "";
    return { calls: [{ tool: "message_send", args: { text: "back to you", files: [path, path] } }] };
  });
  const home = mkdtempSync(join(tmpdir(), "guildhall-files-"));
  const house = await createGuildhall({
    home,
    config: {
      providers: { test: { type: "openai-compatible", base_url: server.url } },
      agents: { main: { model: "test/vision" } },
      channels: { plain: { allow: ["7"], max_file_mb: 1 } },
    },
    channels: [platform.plugin()],
    log: "error",
  });
  onTestFinished(async () => {
    await house.stop();
    await server.close();
    rmSync(home, { recursive: true, force: true });
  });
  const sentAlong = (name: string, bytes: Uint8Array): ChatFile => {
    platform.files.set(name, bytes);
    return { ref: name, name, mediaType: "application/octet-stream", bytes: 1 };
  };
  await platform.say("m1", "what is this?", "7", {
    files: [sentAlong("picture.bin", PNG), sentAlong("film.mp4", Buffer.alloc(1_048_577))],
  });
  await expect.poll(() => platform.sent.length, SOON).toBe(4);
  expect(platform.sent.map(({ part, file }) => part?.plain ?? file?.mediaType)).toEqual([
    "back to you",
    "image/png",
    "image/png",
    "There it is.",
  ]);
  expect(Buffer.from(platform.sent[1]?.file?.data ?? "")).toEqual(PNG);
  expect(readFileSync(join(home, "agents/main/workspace", path))).toEqual(PNG);
  const asked = JSON.stringify((server.requests[0] as SeenRequest).body.messages);
  expect(asked).toContain(`data:image/png;base64,${PNG.toString("base64")}`);
  expect(asked).toMatch(/film\.mp4 is not there: it is larger than 1 MB/);
});
