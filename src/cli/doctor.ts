import { bold, type GlobalOptions, harmless, print } from "./terminal.ts";

export interface DoctorOptions extends GlobalOptions {
  readonly fix?: boolean;
  readonly isolation?: boolean;
}

export async function doctor(options: DoctorOptions): Promise<number> {
  if (options.isolation) return (await import("./doctor-isolation.ts")).isolation(options);
  const { diagnose } = await import("../daemon/doctor/doctor.ts");
  const { willStart, checks } = await diagnose(options, options.fix === true);
  if (options.json) print(JSON.stringify({ willStart, checks }));
  else {
    print(bold(`will start: ${willStart ? "yes" : "no"}`));
    for (const { id, severity, found, fix, repaired } of checks) {
      print(harmless(`${severity.padEnd(7)}  ${id.padEnd(14)}  ${found}`));
      if (repaired !== null) print(harmless(`${" ".repeat(25)}done: ${repaired}`));
      if (severity !== "ok" && fix !== "") print(harmless(`${" ".repeat(25)}fix: ${fix}`));
    }
  }
  return checks.some(({ severity }) => severity === "error") ? 1 : 0;
}
