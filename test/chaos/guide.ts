import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Load, LoadReport } from "./guide-load-worker.ts";
import { Machine, readGuide, removedAtTheEnd, Wire } from "./guide-machine.ts";

const CHECKOUT = new URL("../..", import.meta.url).pathname;
const GUIDE = new URL("../../docs/deployment.md", import.meta.url);
const WORKER = new URL("./guide-load-worker.ts", import.meta.url).pathname;
const SYSTEMCTL = new URL("./guide-systemctl.sh", import.meta.url).pathname;
const FRONT = "http://10.0.0.10:8080";
const STORE = "postgres://guildhall:change-me@10.0.0.10:5432";
const CLIENTS = 6;

export interface GuideReport {
  readonly done: Record<string, string>;
  readonly problems: string[];
}

/**
 * Follows docs/deployment.md on machines that are empty as far as their files go: PostgreSQL and HAProxy from Debian's packages on one, a node on
 * each of two others. Whatever the guide says is done as it stands there; only systemctl is stood in for, and the packages of Node where this machine
 * has them from elsewhere.
 */
export async function followGuide(progress: (line: string) => void): Promise<GuideReport> {
  const base = mkdtempSync(join(tmpdir(), "guildhall-guide-"));
  const remove = removedAtTheEnd(base);
  const guide = readGuide(GUIDE);
  const left = new Set(guide.keys());
  const step = (name: string): string => {
    const commands = guide.get(name);
    if (commands === undefined) throw new Error(`docs/deployment.md has no commands marked "try: ${name}"`);
    left.delete(name);
    progress(name);
    return commands;
  };
  const done: Record<string, string> = {};
  const problems: string[] = [];
  const expect = (what: string, is: boolean, seen = ""): void => {
    if (is) done[what] = seen || "yes";
    else problems.push(`${what}: ${seen || "no"}`);
  };
  const wire = await Wire.lay(["10.0.0.10", "10.0.0.11", "10.0.0.12"]);
  const machines: Machine[] = [];
  const machine = async (name: string): Promise<Machine> => {
    const made = await Machine.unpack(name, base, wire);
    machines.push(made);
    made.install(`install -m 755 '${SYSTEMCTL}' /usr/local/bin/systemctl`);
    return made;
  };
  try {
    const tarball = pack(await machine("workshop"), step("pack"), base);

    const front = await machine("front");
    front.install(`apt-get update -q\n${step("database packages")}\n${step("proxy packages")}`);
    // As the package leaves it, whatever this machine has made of it since.
    front.run(`V=$(ls /etc/postgresql)
      pg_dropcluster --stop $V main 2>/dev/null || true
      install -d -o postgres -g postgres -m 2775 /run/postgresql
      pg_createcluster $V main --start`);
    const version = front.run("ls /etc/postgresql").trim();
    const adapted = (commands: string): string => commands.replaceAll("/15/", `/${version}/`).replaceAll(" 15 ", ` ${version} `);
    front.run(adapted(step("database")));

    const nodes: Machine[] = [];
    const setUp = step("node");
    const packages = step("node packages");
    const [config, start] = [step("config"), step("start")];
    for (const number of [1, 2]) {
      const node = await machine(`node${number}`);
      nodes.push(node);
      node.install(packagesBut(packages));
      node.install(`cp '${tarball}' /root/`);
      node.install(setUp);
      node.run(`sed -i 's/node1/node${number}/; s/10.0.0.11/10.0.0.1${number}/' /etc/guildhall/node.env`);
      progress(node.run(config).trim());
      node.run(start);
      await until(`node${number} is ready`, () => node.run(`curl -s http://10.0.0.1${number}:4270/readyz`).includes('"ready"'));
    }
    const [first, second] = nodes as [Machine, Machine];
    expect("it runs as its own user", first.run("stat -c %U /proc/$(cat /run/guildhall.pid)").trim() === "guildhall");

    const token = /gh_\S+/.exec(first.run(step("token")))?.[0] as string;
    front.install(`cp '${CHECKOUT}'/deploy/{haproxy.cfg,after-restore.sql} /root/`);
    front.run(step("proxy"));
    const commands = step("message");
    await until(
      "the proxy has found both nodes",
      () =>
        first
          .run(`for i in 1 2 3 4 5 6; do curl -s ${FRONT}/readyz; done`)
          .match(/"node":"[^"]+"/g)
          ?.some((each, _, all) => each !== all[0]) ?? false,
    );
    const admitted = first.run(commands, { TOKEN: token });
    expect("a message through the proxy", /"runId"/.test(admitted), admitted.trim().split("\n").at(-1));
    const other = first.run(`curl -s -o /dev/null -w '%{http_code}' -H 'Host: evil.example' ${FRONT}/readyz`);
    expect("another name is refused by the proxy", other === "421", other);
    const stream = first.run(
      `(timeout 3 curl -sN '${FRONT}/api/events?after=0' -H 'Authorization: Bearer ${token}' || true) | head -c 200`,
    );
    expect("events come through as they happen", stream.includes("data: "), stream.slice(0, 60).replaceAll("\n", " "));

    const kill = await underLoad(wire, token, "kill", async () => {
      first.run("kill -KILL $(cat /run/guildhall.pid)");
      await sleep(3_000);
    });
    expect(
      "nothing is lost when a node is killed",
      kill.answered === kill.sent - kill.failed.filter((each) => each.startsWith("/api/messages")).length,
      summary(kill),
    );
    expect("killed under load: no failed request", kill.failed.length === 0, summary(kill));
    first.run(start);
    await until("the killed node is back", () => first.run("curl -s http://10.0.0.11:4270/readyz").includes('"ready"'));
    await sleep(2_000);
    const both = await underLoad(wire, token, "both", () => sleep(1_500));
    expect("both nodes answer", both.nodes.length === 2 && both.answered === both.sent && both.failed.length === 0, summary(both));

    const upgrade = step("upgrade");
    const drain = await underLoad(wire, token, "drain", async () => {
      const begun = performance.now();
      second.run("systemctl stop guildhall");
      done["a drain under load takes"] = `${((performance.now() - begun) / 1000).toFixed(1)} s`;
      await sleep(1_000);
    });
    expect("drained under load: no failed request", drain.failed.length === 0 && drain.answered === drain.sent, summary(drain));
    // The rest of the commands: the package again, from the packages, and the start.
    second.install(upgrade.replace(/^systemctl .*$/gm, ""));
    second.run("systemctl start guildhall");
    await until("the upgraded node is back", () => second.run("curl -s http://10.0.0.12:4270/readyz").includes('"ready"'));

    const saved = first.run(step("backup"));
    expect("a backup", saved.includes("rows") || saved.length > 0, saved.trim());
    const urls = { GUILDHALL_STORE_URL: `${STORE}/guildhall`, GUILDHALL_AGAIN_URL: `${STORE}/guildhall_again` };
    front.run(step("dump"), urls);
    first.run("systemctl stop guildhall");
    second.run("systemctl stop guildhall");
    const restore = step("restore");
    const jumped = front.run(
      `${restore}\npsql -At -c 'select last_value > 1000000000000000 from guildhall.fences' "$GUILDHALL_AGAIN_URL"`,
      urls,
    );
    expect("fences jump after a restore", jumped.trim().endsWith("t"), jumped.trim().split("\n").at(-1));
    first.run("sed -i 's#5432/guildhall?#5432/guildhall_again?#' /etc/guildhall/node.env");
    first.run(start);
    await until("a node works on what was restored", () => first.run("curl -s http://10.0.0.11:4270/readyz").includes('"ready"'));
    await until("the proxy has found it", () => front.run(`curl -s ${FRONT}/readyz`).includes('"ready"'));
    const again = await underLoad(wire, token, "again", () => sleep(1_000));
    expect(
      "the restored house answers, with its tokens",
      again.answered === again.sent && again.sent > 0 && again.failed.length === 0,
      summary(again),
    );
    for (const name of left) problems.push(`"try: ${name}" of the guide was not tried`);
  } catch (error) {
    problems.push((error as Error).message);
    for (const each of machines) progress(`${each.name}: ${each.run("tail -qn 20 /var/log/{guildhall,haproxy}.log 2>/dev/null || true")}`);
  } finally {
    for (const each of machines) await each.turnOff();
    wire.cut();
    await remove();
  }
  return { done, problems };
}

/** From the files as they are, without those that packages brought: these are linked, and `npm ci` is left out. */
function pack(workshop: Machine, commands: string, base: string): string {
  const copy = join(base, "checkout");
  workshop.install(`mkdir '${copy}'
    tar -C '${CHECKOUT}' --exclude=./node_modules --exclude=./.git --exclude=./dist --exclude='./*.tgz' -c . | tar -x -C '${copy}'
    ln -s '${CHECKOUT}/node_modules' '${copy}/node_modules'
    cd '${copy}'
    ${commands.replace(/^npm ci$/m, "")}`);
  return join(copy, readdirSync(copy).find((file) => file.endsWith(".tgz")) as string);
}

/** Where Node and npm come from elsewhere than Debian, its packages of them do not fit beside them. */
function packagesBut(commands: string): string {
  try {
    execFileSync("npm", ["--version"], { stdio: "ignore" });
    return commands.replace(" nodejs npm", "");
  } catch {
    return commands;
  }
}

async function underLoad(wire: Wire, token: string, prefix: string, blow: () => Promise<void>): Promise<LoadReport> {
  const load: Load = { url: FRONT, token, prefix, clients: CLIENTS };
  const child: ChildProcess = spawn("nsenter", [`--net=/proc/${wire.pid}/ns/net`, process.execPath, WORKER, JSON.stringify(load)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let said = "";
  child.stdout?.on("data", (data) => {
    said += data;
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  await sleep(1_500);
  await blow();
  child.stdin?.end("over\n");
  await ended;
  return JSON.parse(said) as LoadReport;
}

function summary({ sent, requests, failed, answered, nodes }: LoadReport): string {
  const examples = failed.length === 0 ? "" : `: ${failed.slice(0, 3).join("; ")}`;
  return `${sent} messages, ${answered} answered, ${nodes.length} nodes, ${requests} requests, ${failed.length} failed${examples}`;
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const end = Date.now() + 40_000; Date.now() < end; await sleep(300)) {
    try {
      if (isSo()) return;
    } catch {
      // Nobody answers yet.
    }
  }
  throw new Error(`not within 40 s: ${what}`);
}
