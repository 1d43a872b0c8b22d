import { linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../kernel/clock.ts";
import { Directory, during } from "./directory.ts";
import { allLinksInside } from "./hard-links.ts";

let top: string;
const at = (path: string): string => join(top, "root", path);
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "guildhall-links-"));
  for (const folder of ["root/a", "root/b"]) mkdirSync(join(top, folder), { recursive: true });
  writeFileSync(join(top, "outside"), "theirs");
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

/** Looks for the names of `root/…`, and lets `meanwhile` happen when the walk opens the folder of that name. */
async function searched(path: string, opened: string, meanwhile: () => void): Promise<boolean> {
  return during(Directory.at("proc-handles", join(top, "root")), async (root) => {
    const [folder = "", name = ""] = path.split("/");
    const watched = new Proxy(root, {
      get: (target, key) => {
        if (key === "directory")
          return (inner: string) => {
            if (inner === opened) meanwhile();
            return target.directory(inner);
          };
        const value = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    return during(root.directory(folder), (directory) =>
      during(directory.entry(name), (file) => allLinksInside(watched, file, { entries: 100, depth: 10, clock: systemClock })),
    );
  });
}

// In which order a folder is read is the file system's matter: so both.
const WAYS = [
  ["a", "b"],
  ["b", "a"],
] as const;

test.each(WAYS)("a file with a name outside does not pass by moving the one inside while we look (%s to %s)", async (from, to) => {
  linkSync(join(top, "outside"), at(`${from}/file`));
  expect(await searched(`${from}/file`, to, () => renameSync(at(`${from}/file`), at(`${to}/file`)))).toBe(false);
});

test.each(WAYS)("nor by moving the folder it is in (%s to %s)", async (from, to) => {
  mkdirSync(at(`${from}/inner`));
  linkSync(join(top, "outside"), at(`${from}/inner/file`));
  linkSync(join(top, "outside"), at(`${from}/file`));
  expect(await searched(`${from}/file`, to, () => renameSync(at(`${from}/inner`), at(`${to}/inner`)))).toBe(false);
});

test("names that are all inside are found, in any folder", async () => {
  writeFileSync(at("a/file"), "ours");
  linkSync(at("a/file"), at("b/other"));
  expect(await searched("a/file", "", () => {})).toBe(true);
});
