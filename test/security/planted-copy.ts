import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = new URL("../..", import.meta.url).pathname;

/** A copy of the program that somebody has spoiled in one place. */
export class PlantedCopy {
  readonly path = mkdtempSync(join(tmpdir(), "guildhall-spoiled-"));

  constructor() {
    for (const name of ["src", "bin", "package.json"]) cpSync(join(ROOT, name), join(this.path, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(this.path, "node_modules"));
  }

  get launcher(): string {
    return join(this.path, "bin", "guildhall.js");
  }

  /** Answers how to undo it. */
  plant(file: string, from: string, to: string): () => void {
    const path = join(this.path, file);
    const text = readFileSync(path, "utf8");
    if (text.split(from).length !== 2) throw new Error(`what is to be spoiled must occur in ${file} exactly once: ${from}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
    return () => writeFileSync(path, text);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
