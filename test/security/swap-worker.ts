import { existsSync, linkSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What an agent's own program could do beside the jail: it puts links in the place of folders and of a file, and takes them away
 * again, as fast as it can, until its parent leaves.
 */
const [inside = "", outside = ""] = process.argv.slice(2);
const at = (name: string): string => join(inside, name);
const isThere = (name: string): boolean => lstatSync(at(name), { throwIfNoEntry: false }) !== undefined;

interface Swap {
  readonly real: string;
  readonly link: string;
  makeReal(): void;
  makeLink(): void;
}

const makeFolder = (name: string) => (): void => {
  mkdirSync(at(name), { recursive: true });
  writeFileSync(join(at(name), "secret.txt"), "inside");
};
const makeFile = (): void => writeFileSync(at("file.txt"), "inside");
const SWAPS: readonly Swap[] = [
  { real: "folder", link: "folder-link", makeReal: makeFolder("folder"), makeLink: () => symlinkSync(outside, at("folder-link")) },
  {
    real: "nest/inner",
    link: "nest/inner-link",
    makeReal: makeFolder("nest/inner"),
    makeLink: () => symlinkSync("../../../../../outside", at("nest/inner-link")),
  },
  {
    real: "file.txt",
    link: "file-link",
    makeReal: makeFile,
    // Of the same name, and not the file with the hard link: each trick must fail for its own reason.
    makeLink: () => symlinkSync(join(outside, "file.txt"), at("file-link")),
  },
  { real: "file.txt", link: "hard-link", makeReal: makeFile, makeLink: () => linkSync(join(outside, "secret.txt"), at("hard-link")) },
];

/** The jail makes folders and files of its own meanwhile, which may be in the way. */
function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // The next round sets it right.
  }
}

function swap({ real, link, makeReal, makeLink }: Swap): void {
  if (!isThere(link)) attempt(makeLink);
  if (!isThere(real)) attempt(makeReal);
  attempt(() => renameSync(at(real), at("away")));
  attempt(() => renameSync(at(link), at(real)));
  attempt(() => renameSync(at(real), at(link)));
  attempt(() => renameSync(at("away"), at(real)));
  attempt(() => rmSync(at("away"), { recursive: true, force: true }));
}

/** A name inside that is there for a moment: opened while it is, and counted when it is not. */
function blink(): void {
  attempt(() => linkSync(join(outside, "secret.txt"), at("blink.txt")));
  attempt(() => unlinkSync(at("blink.txt")));
}

process.on("disconnect", () => process.exit(0));
for (const made of SWAPS) swap(made);
process.send?.("ready");
for (let round = 0; existsSync(inside); round++) {
  swap(SWAPS[round % SWAPS.length] as Swap);
  blink();
  // Whether the parent has left is heard only here.
  if (round % 200 === 0) await new Promise(setImmediate);
}
