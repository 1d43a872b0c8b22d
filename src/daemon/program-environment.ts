import type { Environment } from "../settings/home.ts";

/** What any program needs to be found and to write text that can be read, here and on Windows. Nothing that could be a secret. */
const NEEDED = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP"];

/** With what programs of operators are started, beside what the config gives each of them. */
export function programEnvironment(environment: Environment): Record<string, string> {
  return Object.fromEntries(NEEDED.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])));
}
