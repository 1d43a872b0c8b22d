import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

const WORKER = new URL("./no-descriptors-worker.ts", import.meta.url).pathname;

test("with no descriptor left, what needs a process is refused, nothing is killed, and all works again afterwards", async () => {
  const command = `ulimit -n 64; exec "${process.execPath}" "${WORKER}"`;
  // In a group of its own: the bug that this is about ends everybody in it.
  const child = spawn("sh", ["-c", command], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const [said, complaints, end] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  expect({ said: said.trim().split("\n"), complaints, end }).toEqual({
    said: ["page: tool.unavailable", "config: home.unusable", "server: tool.unavailable", "program: sandbox.unavailable", "page: done"],
    complaints: "",
    end: [0, null],
  });
});
