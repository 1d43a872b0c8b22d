import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What lies on a machine's disk and may be changed there. */
const OVERLAID = ["/etc", "/opt", "/root", "/usr", "/var"];

/** The commands of a guide, by the mark before them. */
export function readGuide(file: URL): ReadonlyMap<string, string> {
  const blocks = readFileSync(file, "utf8").matchAll(/<!-- try: (.+?) -->\n```sh\n([\s\S]+?)```/g);
  return new Map([...blocks].map(([, name, commands]) => [name as string, commands as string]));
}

/** In front of a command: it ends when this process does, however that ends. */
const WITH_US = ["--pdeathsig", "KILL"];

/** The wire between machines: addresses of their own, which nothing else on this machine sees. */
export class Wire {
  readonly #holder: ChildProcess;

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async lay(addresses: readonly string[]): Promise<Wire> {
    const adding = addresses.map((address) => `ip addr add ${address}/24 dev lo`).join("\n");
    const holder = spawn("setpriv", [
      ...WITH_US,
      "unshare",
      "-n",
      "sh",
      "-ec",
      `ip link set lo up\n${adding}\necho ready\nexec sleep infinity`,
    ]);
    await ready(holder);
    return new Wire(holder);
  }

  get pid(): number {
    return this.#holder.pid as number;
  }

  cut(): void {
    this.#holder.kill("SIGKILL");
  }
}

/**
 * A machine as far as its files go: what is written lies in a folder of its own over the files of this machine, which stay as they are. Users and
 * packages are files; the kernel is this machine's. Processes see each other on one machine alone, and all of them end with its first one.
 */
export class Machine {
  readonly name: string;
  readonly #holder: ChildProcess;
  readonly #wire: Wire;

  private constructor(name: string, holder: ChildProcess, wire: Wire) {
    this.name = name;
    this.#holder = holder;
    this.#wire = wire;
  }

  static async unpack(name: string, base: string, wire: Wire): Promise<Machine> {
    const mounts = OVERLAID.map((place) => {
      const [upper, work] = ["upper", "work"].map((kind) => join(base, name, kind, place)) as [string, string];
      for (const folder of [upper, work]) mkdirSync(folder, { recursive: true });
      return `chmod --reference=${place} '${upper}'; mount -t overlay overlay -o 'lowerdir=${place},upperdir=${upper},workdir=${work}' ${place}`;
    });
    const script = [
      "mount --make-rprivate /",
      ...mounts,
      "mount -t tmpfs tmpfs /run",
      "mount -t tmpfs tmpfs /dev/shm",
      "chmod 755 /run",
      `hostname ${name}`,
      "echo ready",
      // The first process of a machine takes note of the ends of those whose parents are gone; a shell that waits does.
      "sleep infinity & wait",
    ];
    const holder = spawn("setpriv", [
      ...[...WITH_US, "unshare", "-muip", "--fork", "--kill-child=KILL", "--mount-proc"],
      ...["bash", "-ec", script.join("\n")],
    ]);
    await ready(holder);
    return new Machine(name, holder, wire);
  }

  /** With the network of this machine: for packages. */
  install(commands: string): string {
    return this.#run(this.#inside, commands, {});
  }

  run(commands: string, environment: Readonly<Record<string, string>> = {}): string {
    return this.#run([...this.#inside, `--net=/proc/${this.#wire.pid}/ns/net`], commands, environment);
  }

  /** Ends everything that was begun on it. */
  async turnOff(): Promise<void> {
    const ended = new Promise((resolve) => this.#holder.once("exit", resolve));
    this.#holder.kill("SIGKILL");
    await ended;
  }

  get #inside(): readonly string[] {
    const { pid } = this.#holder;
    return ["-t", String(pid), "-m", "-u", "-i", `--pid=/proc/${pid}/ns/pid_for_children`];
  }

  #run(where: readonly string[], commands: string, environment: Readonly<Record<string, string>>): string {
    // What is left running in the background must not be waited for: it has no part of our pipes.
    return execFileSync("nsenter", [...where, "bash", "-eo", "pipefail", "-c", `cd /root\n${commands}`], {
      encoding: "utf8",
      env: {
        PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME: "/root",
        LANG: "C.UTF-8",
        DEBIAN_FRONTEND: "noninteractive",
        ...environment,
      },
      stdio: ["ignore", "pipe", "inherit"],
      maxBuffer: 64 * 1024 * 1024,
    });
  }
}

/** Removes a folder when this process ends, however it ends. Answers the word to do so now. */
export function removedAtTheEnd(folder: string): () => Promise<void> {
  const janitor = spawn("sh", ["-c", 'cat; until rm -rf "$1"; do sleep 1; done', "sh", folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = new Promise<void>((resolve) => janitor.once("exit", () => resolve()));
  return () => {
    janitor.stdin.end();
    return ended;
  };
}

async function ready(holder: ChildProcess): Promise<void> {
  let said = "";
  holder.stderr?.on("data", (data) => {
    said += data;
  });
  await new Promise<void>((resolve, reject) => {
    holder.stdout?.once("data", () => resolve());
    holder.once("exit", (code) => reject(new Error(`a machine could not be made (${code}): ${said}`)));
  });
}
