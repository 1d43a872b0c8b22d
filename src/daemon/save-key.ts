import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "../kernel/failure.ts";

/** Puts `NAME=value` into the `.env` of a home, in the place of what it was before. The rest of the file stays as it is. */
export function saveKey(home: string, name: string, value: string): string {
  const file = join(home, ".env");
  const line = `${name}=${/[#'"`\s]/.test(value) ? `"${value}"` : value}`;
  const partial = `${file}.${process.pid}.partial`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const lines = read(file).split("\n");
    const at = lines.findIndex((written) => new RegExp(`^\\s*(export\\s+)?${name}\\s*=`).test(written));
    const kept = at < 0 ? [...withoutLastEmpty(lines), line, ""] : lines.with(at, line);
    // Never half a file, and never one that others may read.
    writeFileSync(partial, kept.join("\n"), { mode: 0o600 });
    chmodSync(partial, 0o600);
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new Failure("home.unusable", `${file} cannot be written (${(error as NodeJS.ErrnoException).code})`, { cause: error });
  }
  return file;
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

function withoutLastEmpty(lines: readonly string[]): readonly string[] {
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
