import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Home, type RunningDaemon } from "./guildhall.ts";

/** Keeps the status and the body of each curl, and shows the body as curl would. A stream that was cut by --max-time is no error. */
const RECORDING_CURL = `
curl() {
  local body="$WALK/$(date +%s%N)"
  local status
  status=$(command curl -sS -o "$body" -w '%{http_code}' "$@") || true
  touch "$body"
  printf '%s %s\\n' "$status" "$body" >> "$WALK/log"
  cat "$body"
}
`;
const EXPECTATION = /# → (\d{3})(.*)$/;

interface Step {
  readonly line: string;
  readonly status: string;
  readonly texts: readonly string[];
}

let home: Home;
let daemon: RunningDaemon;
let tokens: Readonly<Record<string, string>>;

beforeAll(async () => {
  home = new Home();
  daemon = await home.start();
  tokens = { URL: daemon.url, TOKEN: daemon.token, ALICE: await guestToken("alice"), BOB: await guestToken("bob") };
});
afterAll(() => home.remove());

async function guestToken(name: string): Promise<string> {
  const { code, stdout, stderr } = await home.run(["token", "create", "--scope", `guest:${name}`, "--json"]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return (JSON.parse(stdout) as { token: string }).token;
}

function walkOf(room: string): string {
  const readme = readFileSync(new URL(`../../src/records/${room}/README.md`, import.meta.url), "utf8");
  const blocks = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block as string);
  expect(blocks, `the README of ${room} has one walk`).toHaveLength(1);
  return blocks[0] as string;
}

function stepsOf(walk: string): Step[] {
  return walk.split("\n").flatMap((line) => {
    const [, status, rest] = EXPECTATION.exec(line) ?? [];
    if (status === undefined) return [];
    return [
      {
        line,
        status,
        texts: [...(rest ?? "").matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => (text as string).replaceAll('\\"', '"')),
      },
    ];
  });
}

async function walk(script: string): Promise<{ status: string; body: string }[]> {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-walk-"));
  try {
    const bash = spawn("bash", ["-eu"], {
      env: { PATH: process.env.PATH ?? "", WALK: folder, ...tokens },
      stdio: ["pipe", "ignore", "pipe"],
    });
    let said = "";
    bash.stderr.on("data", (data) => {
      said += data;
    });
    bash.stdin.end(RECORDING_CURL + script);
    const code = await new Promise((resolve) => bash.once("close", resolve));
    const taken = readFileSync(join(folder, "log"), "utf8").trimEnd().split("\n");
    const answers = taken.map((line) => {
      const [status, file] = line.split(" ") as [string, string];
      return { status, body: readFileSync(file, "utf8") };
    });
    expect({ code, said }, JSON.stringify(answers, null, 1)).toEqual({ code: 0, said: "" });
    return answers;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test.each(["access", "pools", "claims", "mailbox", "agreements", "sessions"])(
  "the commands in the README of %s do what it says",
  async (room) => {
    const script = walkOf(room);
    const steps = stepsOf(script);
    expect(script.match(/\bcurl\b/g), "every curl says what it answers").toHaveLength(steps.length);
    const answers = await walk(script);
    expect(answers).toHaveLength(steps.length);
    for (const [index, { line, status, texts }] of steps.entries()) {
      const answer = answers[index] as { status: string; body: string };
      expect(answer.status, `${line}\n${answer.body}`).toBe(status);
      for (const text of texts) expect(answer.body, line).toContain(text);
    }
  },
);
