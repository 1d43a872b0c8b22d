import { SEEN_SHARED, SEEN_WORKSPACE } from "../../../contract/tools.ts";
import type { SandboxLimits, SandboxPlan } from "./sandbox.ts";

/** What of the system is looked at when the arguments are made. */
export interface SystemFacts {
  /** Top folders that are links in this system, with what they say. */
  readonly links: ReadonlyMap<string, string>;
  /** Top folders that are folders. */
  readonly folders: readonly string[];
  /** bubblewrap can forbid namespaces inside. */
  readonly disablesUserns: boolean;
}

/** Files that the sandbox has instead of the system's. */
export interface OwnFiles {
  /** A folder with `passwd`, `group`, `hosts`, `nsswitch.conf`. */
  readonly etc: string;
  /** With a guarded network: the socket of the guard, and what programs are started by so that they find it. */
  readonly guard: { readonly socket: string; readonly node: string; readonly script: string } | null;
}

const GUARD_AT = "/run/guildhall";
export const TOP_FOLDERS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] as const;
/** Of /etc only what programs need to start, to tell the time and to check certificates. Nothing that could hold a password. */
const ETC = [
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "alternatives",
  "localtime",
  "timezone",
  "os-release",
  "debian_version",
  "mime.types",
  "protocols",
  "services",
  "ssl/certs",
  "ssl/cert.pem",
  "ssl/openssl.cnf",
  "pki/tls/certs",
  "pki/tls/cert.pem",
  "pki/tls/openssl.cnf",
  "pki/ca-trust/extracted",
  "ca-certificates/extracted",
];

/**
 * What bubblewrap is told. Order matters: what comes later lies on top, and the top folder is closed last.
 * /proc is read-only as a whole: to a program with the number of the administrator, be it without rights, the kernel's settings are writable.
 */
export function bubblewrapArgs(plan: SandboxPlan, facts: SystemFacts, own: OwnFiles, limits: SandboxLimits): string[] {
  const flag = (present: boolean, ...args: string[]): string[] => (present ? args : []);
  return [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"],
    ...flag(plan.network !== "full", "--unshare-net"),
    ...flag(facts.disablesUserns, "--disable-userns"),
    ...["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--clearenv"],
    ...["--perms", "1777", "--size", String(limits.tmpBytes), "--tmpfs", "/tmp"],
    ...["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/nix/store", "/nix/store"],
    ...TOP_FOLDERS.flatMap((name) => {
      const link = facts.links.get(name);
      if (link !== undefined) return ["--symlink", link, `/${name}`];
      return flag(facts.folders.includes(name), "--ro-bind", `/${name}`, `/${name}`);
    }),
    ...["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", String(limits.tmpBytes), "--tmpfs", "/dev/shm"],
    ...["--dir", "/etc", "--dir", "/var", "--symlink", "../tmp", "/var/tmp", "--dir", "/run"],
    ...ETC.flatMap((name) => ["--ro-bind-try", `/etc/${name}`, `/etc/${name}`]),
    ...flag(plan.network === "full", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"),
    ...["passwd", "group", "hosts", "nsswitch.conf"].flatMap((name) => ["--ro-bind", `${own.etc}/${name}`, `/etc/${name}`]),
    ...(own.guard === null ? [] : guardMounts(own.guard)),
    ...["--bind", plan.workspace, SEEN_WORKSPACE],
    // Beside the workspace and not in it: where they are put must not be a place that the agent can turn into a link.
    ...plan.shared.flatMap(({ name, path, writable }) => [writable ? "--bind" : "--ro-bind", path, `${SEEN_SHARED}/${name}`]),
    ...["--chdir", SEEN_WORKSPACE, "--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"],
    ...Object.entries(sandboxEnvironment(plan)).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
}

const PROXY_PORT = 3128;
const INSIDE = { socket: `${GUARD_AT}/socket`, node: `${GUARD_AT}/node` };

function guardMounts({ socket, node, script }: NonNullable<OwnFiles["guard"]>): string[] {
  return ["--ro-bind", socket, INSIDE.socket, "--ro-bind", node, INSIDE.node, "--ro-bind", script, scriptInside(script)];
}

/** With a name that says what is in it: there is no package.json around it. */
function scriptInside(script: string): string {
  return `${GUARD_AT}/forward.${script.endsWith(".ts") ? "mts" : "mjs"}`;
}

/** All that a program sees of an environment. Nothing of the daemon's is in it. */
export function sandboxEnvironment({ kind, network, workspace, env }: SandboxPlan): Record<string, string> {
  const proxy = `http://127.0.0.1:${PROXY_PORT}`;
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
  const local = "localhost,127.0.0.1,::1";
  const isGuarded = kind === "bubblewrap" && network === "guarded";
  return {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    LANG: "C.UTF-8",
    TERM: "dumb",
    ...(kind === "bubblewrap" ? { USER: "agent", TMPDIR: "/tmp" } : {}),
    ...env,
    HOME: kind === "bubblewrap" ? SEEN_WORKSPACE : workspace,
    ...(isGuarded
      ? { ...Object.fromEntries(names.map((name) => [name, proxy])), NO_PROXY: local, no_proxy: local, NODE_USE_ENV_PROXY: "1" }
      : {}),
  };
}

/**
 * Compares what was mounted with what was looked at, then becomes the rest of its arguments. Somebody who may write above a shared folder could
 * have put a link in its place meanwhile.
 */
const AS_LOOKED_AT =
  'while [ "$1" != -- ]; do if [ "$(stat -c %d:%i "$1")" != "$2" ]; then echo "$1 was replaced meanwhile; try again" >&2; exit 126; fi; shift 2; done; shift; exec "$@"';

/**
 * What runs inside: with a guarded network through the forwarder, always within limits where the system can set them. Both streams are one, so
 * that they are read in the order they were written.
 */
export function insideArgs(
  command: string,
  shell: string,
  hasPrlimit: boolean,
  guard: OwnFiles["guard"],
  shared: SandboxPlan["shared"],
  { processes, memoryBytes, fileBytes }: SandboxLimits,
): string[] {
  const looks = shared.flatMap(({ name, identity }) => [`${SEEN_SHARED}/${name}`, identity]);
  return [
    ...(looks.length === 0 ? [] : ["/bin/sh", "-c", AS_LOOKED_AT, "sh", ...looks, "--"]),
    ...(guard === null ? [] : [INSIDE.node, scriptInside(guard.script), INSIDE.socket, String(PROXY_PORT)]),
    ...(hasPrlimit
      ? ["prlimit", `--nproc=${processes}`, `--data=${memoryBytes}`, `--fsize=${fileBytes}`, "--core=0", "--nofile=4096"]
      : []),
    ...[shell, "-c", `exec 2>&1; ${command}`],
  ];
}
