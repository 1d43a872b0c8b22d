// A program that hosts an agent, as far as identities care: it starts the bridge, and it runs hooks. One command a line on stdin, one
// answer a line on stdout.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { LAUNCHER } from "../launcher.ts";
import { Agent } from "./mcp-clients.ts";

const [home = "", cwd = "", ...name] = process.argv.slice(2);
const agent = await Agent.stdio(home, cwd, { args: name.flatMap((one) => ["--name", one]) });

async function hook(input: unknown): Promise<object> {
  // Through a shell, as such programs run hooks.
  const command = `'${process.execPath}' '${LAUNCHER}' guard --hook --home '${home}'`;
  const child = spawn("sh", ["-c", command], { cwd, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.end(JSON.stringify(input));
  const begun = performance.now();
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve) => child.on("close", resolve)),
  ]);
  return { stdout, stderr, code, ms: performance.now() - begun };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { call, args, input } = JSON.parse(line) as { call?: string; args?: Record<string, unknown>; input?: unknown };
  const answer = call === undefined ? await hook(input) : await agent.call(call, args);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await agent.close();
process.exit(0);
