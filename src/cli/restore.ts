import { type GlobalOptions, print } from "./terminal.ts";

export async function restore(file: string, options: GlobalOptions): Promise<number> {
  const { restoreHome } = await import("../daemon/local.ts");
  const summary = await restoreHome(options, file);
  print(options.json ? JSON.stringify(summary) : `${summary.rows} rows restored`);
  return 0;
}
