import { spawn } from "node:child_process";
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SharedPath } from "../../src/contract/config.ts";
import { Secret } from "../../src/contract/secret.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import type { GuardRules } from "../../src/records/workspaces/sandbox/guarded-proxy.ts";
import { type Network, type RunEnd, SANDBOX_LIMITS, type SandboxLimits } from "../../src/records/workspaces/sandbox/sandbox.ts";
import { Sandboxes, type SandboxOwner } from "../../src/records/workspaces/sandbox/sandboxes.ts";
import { Workspaces } from "../../src/records/workspaces/workspaces.ts";

const CANARY = "canary-of-the-daemon-5b1c";
const home = mkdtempSync(join(tmpdir(), "guildhall-sandbox-test-"));
const newId = idSource(systemClock, systemRandom);
const workspaces = await Workspaces.of(home, { clock: systemClock, newId });
const opened: Sandboxes[] = [];

function sandboxesWith(options: { limits?: Partial<SandboxLimits>; guard?: GuardRules; bubblewrap?: string } = {}): Sandboxes {
  const { limits, ...rest } = options;
  const made = new Sandboxes(workspaces, { newId, node: process.execPath, limits: { ...SANDBOX_LIMITS, ...limits }, ...rest });
  opened.push(made);
  return made;
}

const sandboxes = sandboxesWith();
const state = await sandboxes.state();
const why = state.works ? "" : state.why;

function owner(over: Partial<SandboxOwner> = {}): SandboxOwner {
  return {
    id: "main",
    workspaceScope: "agent",
    sharedPaths: [],
    env: { AGENT_TOKEN: new Secret("of-the-agent") },
    sandbox: { kind: "bubblewrap", network: undefined },
    ...over,
  };
}

interface How {
  readonly network?: Network;
  readonly by?: Sandboxes;
  readonly as?: SandboxOwner;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

async function inside(
  command: string,
  { network = "none", by = sandboxes, as = owner(), timeoutMs = 20_000, signal }: How = {},
): Promise<RunEnd> {
  const plan = await by.plan(as, null, { configFile: null }, network);
  return by.run(plan, { command, timeoutMs, signal: signal ?? new AbortController().signal });
}

async function said(command: string, how: How = {}): Promise<string> {
  return (await inside(command, how)).output;
}

const own = (...names: string[]): string => join(home, "agents", "main", "workspace", ...names);

beforeAll(() => {
  process.env.GUILDHALL_TEST_CANARY = CANARY;
  mkdirSync(own(), { recursive: true });
  mkdirSync(join(home, "agents", "other", "workspace"), { recursive: true });
  for (const name of ["state.db", "operator.token", ".env", "guildhall.yaml", "agents/main/SOUL.md", "agents/other/workspace/secret.txt"])
    writeFileSync(join(home, name), CANARY);
});

afterAll(async () => {
  delete process.env.GUILDHALL_TEST_CANARY;
  await Promise.all(opened.map((one) => one.close()));
  rmSync(home, { recursive: true, force: true });
});

/** Processes of this machine whose command line holds a word. */
function processesWith(word: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0").includes(word);
    } catch {
      return false;
    }
  });
}

/** Soon; what is left of it would sleep for days. */
async function isGone(word: string): Promise<boolean> {
  for (const until = performance.now() + 15_000; performance.now() < until; await sleep(50))
    if (processesWith(word).length === 0) return true;
  return false;
}

/** A number of seconds that nothing else sleeps for. */
let seconds = 700_000 + (process.pid % 100_000);
const unique = (): string => String(seconds++);

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

describe("without a bubblewrap that works", () => {
  test.each(["auto", "bubblewrap"] as const)("`sandbox: %s` refuses to run programs, and says why", async (kind) => {
    const missing = sandboxesWith({ bubblewrap: join(home, "no-such-program") });
    const asked = inside("touch ran", { by: missing, as: owner({ sandbox: { kind, network: undefined } }) });
    await expect(asked).rejects.toMatchObject({ code: "sandbox.unavailable", message: expect.stringContaining("not installed") });
    expect(existsSync(own("ran"))).toBe(false);
  });

  test("the words of one that fails are told, and it is tried again once it works", async () => {
    const fake = join(home, "fake-bwrap");
    writeFileSync(fake, "#!/bin/sh\necho 'no namespaces for you' >&2\nexit 1\n", { mode: 0o755 });
    const failing = sandboxesWith({ bubblewrap: fake });
    // As the administrator an old one is refused before it is tried.
    expect(await failing.state()).toMatchObject({ works: false, why: expect.stringMatching(/no namespaces for you|--disable-userns/) });
    if (!state.works) return;
    writeFileSync(fake, '#!/bin/sh\nexec bwrap "$@"\n', { mode: 0o755 });
    expect(await failing.state()).toMatchObject({ works: true });
  });

  test("`sandbox: none` runs them all the same, with the agent's environment alone", async () => {
    const none = owner({ sandbox: { kind: "none", network: undefined } });
    const end = await inside("env; pwd; echo both >&2; exit 3", { as: none });
    expect(end).toMatchObject({ code: 3, hosts: null, ended: null });
    expect(end.output).toContain("AGENT_TOKEN=of-the-agent");
    expect(end.output).toContain(`${own()}\nboth\n`);
    expect(end.output).not.toContain(CANARY);
  });

  test("`sandbox: none` ends a command with its children on stop", async () => {
    const [word, stop] = [unique(), new AbortController()];
    const running = inside(`trap "" TERM; sleep ${word} & (sleep ${word}; true)`, {
      as: owner({ sandbox: { kind: "none", network: undefined } }),
      signal: stop.signal,
    });
    while (processesWith(word).length < 2) await sleep(20);
    stop.abort();
    expect((await running).ended).toBe("stopped");
    expect(await isGone(word)).toBe(true);
  });
});

test.each(["sleep", "setsid sleep"])("`sandbox: none` does not wait for what a command leaves in the background (%s)", async (how) => {
  const word = `60.${unique()}`;
  const none = owner({ sandbox: { kind: "none", network: undefined } });
  const end = await inside(`${how} ${word} & echo said`, { as: none });
  try {
    expect(end).toMatchObject({ code: 0, output: "said\n", ended: null });
    if (how === "sleep") expect(await isGone(word)).toBe(true);
  } finally {
    for (const pid of processesWith(word)) process.kill(Number(pid), "SIGKILL");
  }
});

test("where bubblewrap works at all, our sandbox does", async () => {
  const bare = spawn("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"], { stdio: "ignore" });
  const code = await new Promise((resolve) => bare.on("error", () => resolve(null)).on("close", resolve));
  if (code === 0) expect(state).toMatchObject({ works: true });
});

test.runIf(!state.works)(`the tests of the sandbox are SKIPPED: ${why}`, () => {
  console.warn(`bubblewrap does not work here, and nothing about the sandbox was tested: ${why}`);
});

describe.skipIf(!state.works)("files", () => {
  test("nothing of the home, of other users and of the system's secrets is there", async () => {
    const paths = ["state.db", "operator.token", ".env", "guildhall.yaml", "agents/main/SOUL.md", "agents/other/workspace/secret.txt"];
    const others = [
      "/root",
      "/home",
      "/etc/shadow",
      "/etc/gshadow",
      "/etc/ssl/private",
      "/var/lib",
      "/var/run",
      "/sys",
      "/boot",
      "/mnt",
      "/opt",
      "/srv",
      "/.dockerenv",
    ];
    for (const path of [...paths.map((name) => join(home, name)), ...others, "../SOUL.md", "../../other/workspace/secret.txt"]) {
      const { code, output } = await inside(`ls -la '${path}' && cat '${path}'`);
      expect(code, path).not.toBe(0);
      expect(output, path).not.toContain(CANARY);
    }
  });

  test("looking through everything that is visible finds nothing of the daemon's", async () => {
    writeFileSync(own("needle"), CANARY);
    const found = await said(
      'cd /; grep -rIlF "$(cat /workspace/needle)" $(ls -A / | grep -vE "^(usr|proc|dev|workspace|lib.*|bin|sbin)$") 2>/dev/null; cat /proc/[0-9]*/environ 2>/dev/null | grep -caF "$(cat /workspace/needle)"',
    );
    expect(found.trim()).toBe("0");
    rmSync(own("needle"));
  });

  test("a home or a config file among the system's programs would be seen, and is refused", async () => {
    const link = join(home, "linked.yaml");
    symlinkSync("/usr/bin/env", link);
    for (const configFile of ["/usr/local/etc/guildhall.yaml", link])
      await expect(sandboxes.plan(owner(), null, { configFile }, "none"), configFile).rejects.toMatchObject({
        code: "sandbox.unavailable",
        message: expect.stringContaining("/usr"),
      });
    // Nothing is written where it is only said to be.
    const there = Object.create(workspaces, { home: { value: "/usr/local/guildhall" } }) as Workspaces;
    const misplaced = new Sandboxes(there, { newId, node: process.execPath });
    opened.push(misplaced);
    await expect(inside("true", { by: misplaced })).rejects.toMatchObject({ code: "sandbox.unavailable" });
  });

  test("links out of the workspace lead nowhere", async () => {
    const { output } = await inside(
      `ln -sfn ${home} out; ln -sfn / top; ln -sfn ../../.. up; cat out/state.db top${home}/state.db up/state.db up/operator.token; ls top/root; rm out top up`,
    );
    expect(output).not.toContain(CANARY);
    expect(output.match(/No such file/g)?.length).toBe(5);
  });

  test("the system cannot be written, nor what is shared for reading", async () => {
    const [docs, desk] = [join(home, "docs"), join(home, "desk")];
    for (const folder of [docs, desk]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(docs, "guide.md"), "of the team");
    const sharedPaths: SharedPath[] = [
      { path: docs, mode: "ro" },
      { path: desk, mode: "rw" },
      { path: join(home, "agents", "other"), mode: "rw", name: "theirs" },
    ];
    const as = owner({ sharedPaths });
    const places = "/ /usr /usr/bin /bin /lib /etc /var /run /dev /proc shared/docs /shared /shared/docs";
    const { output } = await inside(
      `for p in ${places}; do touch $p/new && echo WROTE $p; done; touch /usr/bin/env && echo WROTE env; cat shared/docs/guide.md; echo x > shared/desk/new.txt; ls shared/`,
      { as },
    );
    expect(output).not.toContain("WROTE");
    expect(output).toContain("of the team");
    expect(output).toMatch(/desk\ndocs\n$/);
    expect(readFileSync(join(desk, "new.txt"), "utf8")).toBe("x\n");
    expect(readdirSync(docs)).toEqual(["guide.md"]);
    // No longer shared: the link to it goes too.
    expect(await said("ls -a")).not.toContain("shared");
  });

  test("a shared folder that is swapped for a link after it was looked at is not shown", async () => {
    const team = join(home, "..", `guildhall-sandbox-team-${process.pid}`);
    mkdirSync(join(team, "sub"), { recursive: true });
    try {
      const as = owner({ sharedPaths: [{ path: join(team, "sub"), mode: "ro" }] });
      const plan = await sandboxes.plan(as, null, { configFile: null }, "none");
      const run = () =>
        sandboxes.run(plan, { command: "ls /shared/sub; echo ran", timeoutMs: 20_000, signal: new AbortController().signal });
      expect(await run()).toMatchObject({ code: 0, output: "ran\n" });
      renameSync(join(team, "sub"), join(team, "other"));
      symlinkSync(relative(team, home), join(team, "sub"));
      expect(await run()).toMatchObject({ code: 126, output: "/shared/sub was replaced meanwhile; try again\n" });
    } finally {
      rmSync(team, { recursive: true, force: true });
    }
  });

  test("the kernel's settings cannot be written, though the administrator's number is behind the program", async () => {
    // With what it holds already: should it succeed, nothing is changed.
    const files = "/proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/swappiness /proc/sys/fs/file-max";
    expect(await said(`for f in ${files}; do v=$(cat $f); (echo "$v" > $f) 2>/dev/null && echo WROTE $f; done; true`)).toBe("");
    expect(
      await said("find /proc -maxdepth 1 -type f -perm /222 | while read f; do (: >> $f) 2>/dev/null && echo WROTE $f; done; true"),
    ).toBe("");
  });

  test("what it writes is the daemon's to use, and what the daemon writes is its", async () => {
    const workspace = workspaces.workspace(owner(), null, { configFile: null });
    await workspace.write("from-outside/a.txt", "hello");
    expect(await said("cat from-outside/a.txt && mkdir -m 700 made && echo inside > made/b.txt && chmod 600 made/b.txt && id -un")).toBe(
      "helloagent\n",
    );
    expect(Buffer.from((await workspace.read("made/b.txt")).bytes).toString()).toBe("inside\n");
    await workspace.remove("made", { recursive: true });
    expect(existsSync(own("made"))).toBe(false);
  });

  test("/tmp is its own, and each command's alone", async () => {
    expect(await said("ls -A /tmp /var/tmp; echo x > /tmp/left; cat /tmp/left")).toMatch(/x\n$/);
    expect(existsSync("/tmp/left")).toBe(false);
    expect(await said("ls -A /tmp")).toBe("");
  });
});

describe.skipIf(!state.works)("the environment", () => {
  test("is the agent's alone", async () => {
    const output = await said("env; tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/1/environ");
    expect(output).toContain("AGENT_TOKEN=of-the-agent");
    expect(output).toContain("HOME=/workspace\n");
    expect(output).not.toContain(CANARY);
    const names = new Set(output.split("\n").map((line) => line.split("=")[0]));
    const known = ["", "_", "AGENT_TOKEN", "HOME", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "USER"];
    expect([...names].filter((name) => !known.includes(name as string))).toEqual([]);
  });

  test("does not stand on the command line, where all users of this machine could read it", async () => {
    const [word, stop] = [unique(), new AbortController()];
    const running = inside(`sleep ${word}`, { signal: stop.signal });
    while (processesWith(word).length === 0) await sleep(20);
    const lines = readdirSync("/proc")
      .filter((pid) => /^\d+$/.test(pid))
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "latin1");
        } catch {
          return "";
        }
      });
    expect(lines.some((line) => line.includes("of-the-agent"))).toBe(false);
    stop.abort();
    await running;
  });

  test("holds no open files of whoever started the daemon", async () => {
    const worker = new URL("./sandbox-worker.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, [worker, home, "run", "ls -l /proc/self/fd; cat <&9; cat <&20"], {
      stdio: ["ignore", "pipe", "inherit", ...Array(18).fill("pipe")],
    });
    for (const stream of child.stdio.slice(3)) stream?.on("error", () => {});
    for (const handle of [9, 20]) (child.stdio[handle] as NodeJS.WritableStream).end(CANARY);
    let output = "";
    for await (const piece of child.stdout as AsyncIterable<Buffer>) output += piece;
    expect(JSON.parse(output).output).not.toContain("pipe:");
    expect(JSON.parse(output).output).not.toContain(CANARY);
  });
});

describe.skipIf(!state.works)("processes", () => {
  test("others are neither seen nor reached, nor is the daemon", async () => {
    const word = unique();
    const victim = spawn("sleep", [word], { stdio: "ignore" });
    try {
      const pid = victim.pid as number;
      const attach = `perl -e '$r = syscall(101, 16, ${pid}, 0, 0); print $r == 0 ? "ATTACHED" : "refused"'`;
      const output = await said(
        `kill -9 ${pid}; kill -0 ${process.pid} && echo REACHED; ${attach}; cat /proc/${pid}/environ /proc/${process.pid}/environ; ls /proc | grep -c '^[0-9]'; grep -l ${word} /proc/[0-9]*/cmdline`,
      );
      expect(output).not.toContain("ATTACHED");
      expect(output).not.toContain("REACHED");
      expect(output).not.toContain(CANARY);
      const seen = await said("ps ax | wc -l || ls /proc | grep -c '^[0-9]'");
      expect(Number(seen)).toBeLessThan(8);
      // Only where it cannot mean this machine: a test must not do what it is to show impossible.
      const here = readlinkSync("/proc/self/ns/pid");
      expect(await said("readlink /proc/self/ns/pid")).not.toContain(here);
      await said("kill -9 -1");
      expect(victim.exitCode ?? victim.signalCode).toBeNull();
    } finally {
      victim.kill("SIGKILL");
    }
  });

  test("have no rights, and cannot get any", async () => {
    const status = await said("grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status");
    expect(status.match(/^Cap\w+:\s+0000000000000000$/gm)).toHaveLength(5);
    expect(status).toMatch(/NoNewPrivs:\s+1/);
    expect(status).toMatch(/Seccomp:\s+2/);
    const attempts = [
      "mount -t tmpfs none /tmp",
      "mount -o remount,rw /usr",
      "mount -o remount,rw,bind /proc",
      "umount /proc",
      "unshare -Ur true",
      "unshare -m true",
      "chroot / true",
      "mknod /tmp/disk b 8 0",
      "nsenter -t 1 -m true",
      "su -c true",
      "chown 0 /workspace",
      "hostname other",
      "date -s 2001-01-01",
      "dmesg",
    ];
    for (const attempt of attempts) expect((await inside(attempt)).code, attempt).not.toBe(0);
  });

  test.runIf(process.arch === "x64")("none can be changed by another, so that the first one ends when it is told to", async () => {
    const attach = `perl -e '$r = syscall(101, 16, 1, 0, 0); print $r == 0 ? "ATTACHED" : "refused"'`;
    expect(await said(attach)).toBe("refused");
    expect(await said(`perl -e 'use Errno; syscall(311, 1, 0, 0, 0, 0, 0); print $!{EPERM} ? "refused" : "$!"'`)).toBe("refused");
  });

  test.runIf(process.arch === "x64")("kernel keyrings and the like are closed", async () => {
    const numbers = { keyctl: 250, add_key: 248, bpf: 321, unshare: 272, io_uring_setup: 425 };
    for (const [name, number] of Object.entries(numbers))
      expect(await said(`perl -e 'use Errno; $r = syscall(${number}, 0, 0, 0, 0, 0); print $!{EPERM} ? "refused" : "r=$r $!"'`), name).toBe(
        "refused",
      );
  });

  test.runIf(state.works && state.boundsProcesses)("a fork bomb is bounded", async () => {
    const bounded = sandboxesWith({ limits: { processes: 64 } });
    const forks = `perl -e '$n = 0; for (1..1000) { $p = fork; last unless defined $p; if ($p == 0) { sleep 60; exit } $n++ } print "forked $n\\n"; kill 9, -getpgrp'`;
    const { output } = await inside(forks, { by: bounded });
    const forked = Number(/forked (\d+)/.exec(output)?.[1]);
    expect(forked).toBeGreaterThan(10);
    expect(forked).toBeLessThan(64);
  });

  test("memory, the size of files, and output are bounded", async () => {
    const bounded = sandboxesWith({
      limits: { memoryBytes: 256 * 1024 * 1024, fileBytes: 1024 * 1024, outputBytes: 1024 * 1024, tmpBytes: 1024 * 1024 },
    });
    const hungry = await inside("tail /dev/zero", { by: bounded });
    expect(hungry.code === 0).toBe(false);
    expect(hungry.ended).toBeNull();
    expect((await inside("head -c 3000000 /dev/zero > big", { by: bounded })).code).not.toBe(0);
    expect(readFileSync(own("big")).length).toBeLessThanOrEqual(1024 * 1024);
    expect((await inside("for i in 1 2 3; do head -c 900000 /dev/zero > /tmp/$i; done", { by: bounded })).code).not.toBe(0);
    const loud = await inside("yes", { by: bounded });
    expect(loud.ended).toBe("output");
    const long = await inside("head -c 30000000 /dev/zero | tr '\\0' x");
    expect(long.output.length).toBeLessThan(2.2 * 1024 * 1024);
    expect(long.cut).toBeGreaterThan(27_000_000);
  });
});

describe.skipIf(!state.works)("ending", () => {
  /** On a busy machine a program may get nowhere in the time that it has. */
  const BEGINS_LATE = { retry: 3 };
  const family = (word: string): string =>
    `sleep ${word} & (setsid sleep ${word} &) ; nohup setsid sh -c 'trap "" TERM HUP; sleep ${word}; sleep ${word}' >/dev/null 2>&1 & trap "" TERM; sleep ${word}; sleep ${word}`;

  test.each(["none", "guarded", "full"] as const)(
    "after its time, nothing of a command is left, grandchildren included (network %s)",
    BEGINS_LATE,
    async (network) => {
      const word = unique();
      const running = inside(family(word), { timeoutMs: 1_500, network });
      await expect.poll(() => processesWith(word).length, { timeout: 3_000, interval: 20 }).toBeGreaterThan(2);
      expect(await running).toMatchObject({ ended: "timeout" });
      expect(await isGone(word)).toBe(true);
    },
  );

  test("on stop, nothing is left", async () => {
    const [word, stop] = [unique(), new AbortController()];
    const running = inside(family(word), { signal: stop.signal });
    while (processesWith(word).length < 3) await sleep(20);
    stop.abort();
    expect(await running).toMatchObject({ ended: "stopped" });
    expect(await isGone(word)).toBe(true);
  });

  test("a program is asked first, and has a moment to put things in order", BEGINS_LATE, async () => {
    const stop = new AbortController();
    const running = inside("trap 'echo in order > ended; exit' TERM; echo > began; while :; do sleep 0.05; done", { signal: stop.signal });
    while (!existsSync(own("began"))) await sleep(20);
    rmSync(own("began"));
    stop.abort();
    await running;
    expect(readFileSync(own("ended"), "utf8")).toBe("in order\n");
  });

  test("when the command ends, what it left in the background ends too", async () => {
    const word = unique();
    expect(await inside(`sleep ${word} & (setsid sleep ${word} &) ; echo done`)).toMatchObject({ code: 0, output: "done\n" });
    expect(await isGone(word)).toBe(true);
  });

  test("when the daemon is killed, everything it runs ends", async () => {
    const word = unique();
    const worker = new URL("./sandbox-worker.ts", import.meta.url).pathname;
    const daemon = spawn(process.execPath, [worker, home, "stay", `(setsid sleep ${word} &) ; sleep ${word}`], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    while (processesWith(word).length < 2) await sleep(20);
    daemon.kill("SIGKILL");
    expect(await isGone(word)).toBe(true);
  });

  test("closing ends what still runs, and starts nothing more", async () => {
    const [word, closing] = [unique(), sandboxesWith()];
    const running = inside(`sleep ${word}`, { by: closing });
    while (processesWith(word).length === 0) await sleep(20);
    await closing.close();
    expect((await running).ended).toBe("stopped");
    expect(processesWith(word)).toEqual([]);
    await expect(inside("true", { by: closing })).rejects.toMatchObject({ code: "daemon.stopping" });
  });
});

describe.skipIf(!state.works)("the network", () => {
  let server: Server;
  let web: ReturnType<typeof createHttpServer>;
  let port: number;
  let webPort: number;
  let connections = 0;

  beforeAll(async () => {
    server = createServer((socket) => {
      connections++;
      socket.on("error", () => {});
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${CANARY.length}\r\n\r\n${CANARY}`);
    });
    port = await listening(server);
    web = createHttpServer((asked, answer) => answer.end(`${asked.method} ${asked.url} of ${asked.headers.host}`));
    webPort = await listening(web);
  });
  beforeEach(() => {
    connections = 0;
  });
  afterAll(() => {
    server.close();
    web.close();
  });

  const ownAddresses = Object.values(networkInterfaces()).flatMap((list) =>
    (list ?? []).filter(({ internal }) => !internal).map(({ address }) => address),
  );

  test("`none`: neither this machine nor any other is there", async () => {
    const abstract = createServer((socket) => socket.end(CANARY));
    await new Promise<void>((resolve) => abstract.listen(`\0guildhall-test-${process.pid}`, resolve));
    const tries = ["127.0.0.1", "169.254.169.254", "1.1.1.1", ...ownAddresses.filter((address) => !address.includes(":"))].map(
      (host) => `timeout 3 bash -c 'cat < /dev/tcp/${host}/${port}'`,
    );
    const unix = `perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); print connect(S, pack_sockaddr_un("\\0guildhall-test-${process.pid}")) ? "CONNECTED" : "refused"'`;
    const output = await said(`${tries.join("; ")}; ${unix}; cat /proc/net/dev; curl -sS -m 3 http://example.com`);
    abstract.close();
    expect(output).not.toContain(CANARY);
    expect(output).not.toContain("CONNECTED");
    expect(output).not.toMatch(/eth|ens|wlan/);
    expect(connections).toBe(0);
  });

  test("`guarded`: neither this machine, nor private networks, nor metadata services are reached, however they are written", async () => {
    const hosts = [
      "127.0.0.1",
      "localhost",
      "0.0.0.0",
      "2130706433",
      "0x7f.1",
      "0177.0.0.1",
      "127.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[::]",
      "169.254.169.254",
      "[::ffff:169.254.169.254]",
      "10.0.0.1",
      "192.168.0.1",
      "metadata.google.internal",
      ...ownAddresses.map((address) => (address.includes(":") ? `[${address.split("%")[0]}]` : address)),
    ];
    const asks = hosts.flatMap((host) => [
      `curl -sS -m 5 --noproxy '' 'http://${host}:${port}/'`,
      `curl -sS -m 5 --noproxy '' -p 'http://${host}:${port}/'`,
      `curl -sS -m 5 --noproxy '' -k 'https://${host}:${port}/'`,
      `curl -sS -m 5 --noproxy '*' 'http://${host}:${port}/'`,
    ]);
    const end = await inside(`${asks.join("; ")}; timeout 3 bash -c 'cat < /dev/tcp/127.0.0.1/${port}'; true`, {
      network: "guarded",
      timeoutMs: 60_000,
    });
    expect(end.output).not.toContain(CANARY);
    expect(connections).toBe(0);
    expect(end.hosts).toContain(`127.0.0.1:${port}`);
    expect(end.output).toContain("is not on the public internet");
  });

  /** What the names mean here: one is "public" and lies on this machine, the other is not. */
  const rules = (resolved: string[]): GuardRules => ({
    resolve: async (host) => {
      resolved.push(host);
      // Somebody's name server that answers something else the second time.
      return host === "public.example" && resolved.length === 1 ? ["10.0.0.1", "127.0.0.1"] : ["127.0.0.2"];
    },
    mayReach: (address) => address === "127.0.0.1",
  });

  test.each([
    ["plain", "", "GET http", "GET /a?b=c of public.example"],
    ["by a tunnel", "-p", "", "GET /a?b=c of public.example"],
    ["with a body", "-X POST -d hello", "", "POST /a?b=c of public.example"],
  ])("`guarded`: what is public is reached, %s, at the one address that was looked at", async (_, options, __, expected) => {
    const resolved: string[] = [];
    const by = sandboxesWith({ guard: rules(resolved) });
    const end = await inside(`curl -sS -m 10 ${options} 'http://public.example:${webPort}/a?b=c'`, { network: "guarded", by });
    expect(end.output).toBe(`${expected}:${webPort}`);
    expect(end.hosts).toEqual([`public.example:${webPort}`]);
    expect(resolved).toEqual(["public.example"]);
    const second = await inside(`curl -sS -m 10 ${options} 'http://public.example:${webPort}/'`, { network: "guarded", by });
    expect(second.output).toContain(options === "-p" ? "403" : "is not on the public internet");
  });

  test("`guarded`: a command's own exit code and both streams come through", async () => {
    expect(await inside("echo out; echo err >&2; exit 7", { network: "guarded" })).toMatchObject({ code: 7, output: "out\nerr\n" });
    expect(await inside("kill -9 $$", { network: "guarded" })).toMatchObject({ code: 137 });
  });

  test("`full`: this machine's network is there, because the config says so", async () => {
    expect(await said(`curl -sS -m 5 http://127.0.0.1:${port}/`, { network: "full" })).toBe(CANARY);
  });
});

const worker = new URL("./sandbox-worker.ts", import.meta.url).pathname;
const others = readableByOthers(worker) && readableByOthers(process.execPath);

function readableByOthers(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    for (let path = file; path !== "/"; path = join(path, "..")) {
      const { mode } = statSync(path);
      if ((mode & 0o004) === 0 || (path !== file && (mode & 0o001) === 0)) return false;
    }
    return true;
  } catch {
    return false;
  }
}

test.runIf(state.works && process.getuid?.() === 0 && others)("an ordinary user has the same sandbox, and its bounds", async () => {
  const theirs = mkdtempSync(join(tmpdir(), "guildhall-sandbox-nobody-"));
  chownSync(theirs, 65_534, 65_534);
  const forks = `id -u; cat /etc/shadow; perl -e '$n = 0; for (1..500) { $p = fork; last unless defined $p; if ($p == 0) { sleep 60; exit } $n++ } print "forked $n\\n"; kill 9, -getpgrp'`;
  const child = spawn(process.execPath, [worker, theirs, "run", forks], {
    uid: 65_534,
    gid: 65_534,
    env: {},
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  for await (const piece of child.stdout) output += piece;
  rmSync(theirs, { recursive: true, force: true });
  const end = JSON.parse(output) as RunEnd;
  expect(end.output).toContain("1000\n");
  const forked = Number(/forked (\d+)/.exec(end.output)?.[1]);
  expect(forked).toBeGreaterThan(10);
  expect(forked).toBeLessThan(64);
});
