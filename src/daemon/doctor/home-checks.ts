import { accessSync, chmodSync, constants, lstatSync, mkdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { ERRORS } from "../../contract/errors.ts";
import { blocking, type Finding, ok, warning } from "./check.ts";

/** Whether the home can be used, and by nobody else. */
export function homeChecks(home: string): Finding[] {
  const stats = statSync(home, { throwIfNoEntry: false });
  if (!stats) return [missingHome(home)];
  if (!stats.isDirectory()) return [blocking("home", `${home} is not a folder`, "Remove it, or choose another with --home.")];
  if (!mayWrite(home)) return [blocking("home", `${home} cannot be written by this user`, ERRORS["home.unusable"].hint)];
  return [
    ...(isForeign(stats) ? [foreign(home, stats)] : []),
    exposed(stats) ? readable("home", home, stats, 0o700) : ok("home", `${home} is writable, and closed to others`),
    secretFile("operator-token", home, "operator.token", "made at the first start"),
    secretFile("secrets", home, ".env", "no secrets are kept there"),
  ];
}

/** The administrator may do everything there, and what it makes is closed to the one who runs the daemon. */
function foreign(home: string, { uid }: Stats): Finding {
  return warning("home-owner", `${home} belongs to another user (number ${uid})`, "Run guildhall as that user.");
}

function isForeign({ uid }: Stats): boolean {
  return process.getuid !== undefined && uid !== process.getuid();
}

function missingHome(home: string): Finding {
  let above = dirname(home);
  while (!statSync(above, { throwIfNoEntry: false }) && dirname(above) !== above) above = dirname(above);
  if (!mayWrite(above)) return blocking("home", `${home} does not exist, and ${above} cannot be written`, ERRORS["home.unusable"].hint);
  return warning("home", `${home} does not exist yet`, "It is made at the first start.", {
    does: `made ${home}`,
    run: () => mkdirSync(home, { recursive: true, mode: 0o700 }),
  });
}

function secretFile(id: string, home: string, name: string, without: string): Finding {
  const file = join(home, name);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats) return ok(id, `there is no ${name}: ${without}`);
  return exposed(stats) ? readable(id, file, stats, 0o600) : ok(id, `${name} is closed to others`);
}

function readable(id: string, path: string, stats: Stats, mode: number): Finding {
  const shown = (stats.mode & 0o777).toString(8);
  return warning(id, `others on this machine can get at ${path} (mode ${shown})`, `chmod ${mode.toString(8)} ${path}`, {
    does: `took the rights of others on ${path} away`,
    run: () => chmodSync(path, mode),
  });
}

function exposed({ mode }: Stats): boolean {
  return process.platform !== "win32" && (mode & 0o077) !== 0;
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The folders of agents: real ones, of this user alone. */
export function folderChecks(home: string, ids: readonly string[]): Finding[] {
  const id = "agent-folders";
  const folders = ids.flatMap((agent) => [join(home, "agents", agent), join(home, "agents", agent, "workspace")]);
  const states = folders.map((path) => [path, lstatSync(path, { throwIfNoEntry: false })] as const);
  const wrong = states.find(([, stats]) => stats !== undefined && !stats.isDirectory());
  if (wrong)
    return [
      {
        ...warning(
          id,
          `${wrong[0]} is a link or a file: its agent has no workspace`,
          "Put a real folder there; use shared_paths for others.",
        ),
        severity: "error",
      },
    ];
  const open = states.filter(([, stats]) => stats !== undefined && exposed(stats)).map(([path]) => path);
  if (open.length > 0)
    return [
      warning(id, `others on this machine can get at ${open[0]}${more(open.length)}`, `chmod 700 ${open[0]}`, {
        does: `took the rights of others on ${open.length} folder${open.length === 1 ? "" : "s"} away`,
        run: () => {
          for (const path of open) chmodSync(path, 0o700);
        },
      }),
    ];
  const missing = states.filter(([, stats]) => stats === undefined).map(([path]) => path);
  if (missing.length === 0) return [ok(id, `${ids.length} agent${ids.length === 1 ? " has its folder" : "s have their folders"}`)];
  const found = ok(id, `${missing[0]}${more(missing.length)} ${missing.length === 1 ? "is" : "are"} made when first used`);
  const stats = statSync(home, { throwIfNoEntry: false });
  if (stats && isForeign(stats)) return [found];
  return [
    {
      ...found,
      repair: {
        does: `made ${missing.length} folder${missing.length === 1 ? "" : "s"}`,
        run: () => {
          for (const path of missing) mkdirSync(path, { recursive: true, mode: 0o700 });
        },
      },
    },
  ];
}

function more(count: number): string {
  return count === 1 ? "" : ` and ${count - 1} more`;
}
