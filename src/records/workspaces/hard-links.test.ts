import { linkSync, mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../kernel/clock.ts";
import { Directory, during, type HeldEntry } from "./directory.ts";
import { allLinksInside, onlyNameInside } from "./hard-links.ts";

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

/** Holds `root/a/<name>`, lets something happen, and asks. */
function held<Answer>(name: string, ask: (file: HeldEntry, folder: Directory, root: Directory) => Promise<Answer>): Promise<Answer> {
  return during(Directory.at("proc-handles", join(top, "root")), (root) =>
    during(root.directory("a"), (folder) => during(folder.entry(name), (file) => ask(file, folder, root))),
  );
}

test("a file outside that lost its name inside after it was opened has one name, and is not ours", async () => {
  linkSync(join(top, "outside"), at("a/file"));
  const inside = await held("file", (file, _folder, root) => {
    unlinkSync(at("a/file"));
    return allLinksInside(root, file, { entries: 100, depth: 10, clock: systemClock });
  });
  expect(inside).toBe(false);
});

// How the system writes that a name is gone, and a name that is written so.
test.each(["file", "file (deleted)"])("a name that was taken away and given back was not there in between: %s", async (name) => {
  const only = (meanwhile: () => void): Promise<boolean> =>
    held(name, (file, folder) => {
      meanwhile();
      return onlyNameInside(folder, name, file, systemClock);
    });
  linkSync(join(top, "outside"), at(`a/${name}`));
  expect(await only(() => unlinkSync(at(`a/${name}`)))).toBe(false);
  linkSync(join(top, "outside"), at("a/file-2"));
  renameSync(at("a/file-2"), at(`a/${name}`));
  const shown = only(() => {
    renameSync(at(`a/${name}`), at("a/file"));
    unlinkSync(at("a/file"));
  });
  expect(await shown).toBe(false);
  linkSync(join(top, "outside"), at(`a/${name}`));
  const back = only(() => {
    unlinkSync(at(`a/${name}`));
    linkSync(join(top, "outside"), at(`a/${name}`));
  });
  expect(await back).toBe(false);
  writeFileSync(at("a/own"), "ours");
  renameSync(at("a/own"), at(`a/${name}`));
  expect(await only(() => {})).toBe(true);
});
