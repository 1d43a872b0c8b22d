import { readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../kernel/random.ts";

export interface HomeId {
  readonly id: string;
  /** Where the home was when its id was drawn, if that is elsewhere: this is a copy of it, or it has moved. */
  readonly elsewhere: string | null;
}

const ID_BYTES = 12;

/**
 * Whoever has the home of another node is taken for its next life, and what that one holds is freed: a copy must not have the same id. So an
 * id is good at one place of one machine, and another one is drawn everywhere else. Called with the home locked.
 */
export function homeId(home: string, machine: string, random: Random): HomeId {
  const file = join(home, "node.id");
  const here = `${machine}:${realpathSync(home)}`;
  const [known = "", there = ""] = read(file).split("\n");
  if (known !== "" && there === here) return { id: known, elsewhere: null };
  const id = Buffer.from(random.bytes(ID_BYTES)).toString("hex");
  writeFileSync(`${file}.partial`, `${id}\n${here}\n`, { mode: 0o600 });
  renameSync(`${file}.partial`, file);
  return { id, elsewhere: there || null };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // There is none yet.
    return "";
  }
}
