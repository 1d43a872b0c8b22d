import { type GlobalOptions, print } from "./terminal.ts";

export async function backup(file: string, options: GlobalOptions): Promise<number> {
  const { backupHome } = await import("../daemon/local.ts");
  const summary = await backupHome(options, file);
  print(options.json ? JSON.stringify(summary) : `${summary.file}: ${summary.rows} rows of ${summary.tables} tables`);
  return 0;
}
