import type { PlantedBug } from "./bugs.ts";

const ROOM = "src/records/workspaces";
const jail = { tests: ["test/security/jail.test.ts"] };
const verbs = { tests: [`${ROOM}/workspace.test.ts`] };

/** Bugs in the file jail and in shared paths. */
export const WORKSPACE_BUGS: readonly PlantedBug[] = [
  {
    name: "workspace: the way down follows links",
    file: `${ROOM}/directory.ts`,
    from: '"proc-handles" ? O_PATH | O_NOFOLLOW : O_RDONLY | O_NOFOLLOW_ANY',
    to: '"proc-handles" ? O_PATH : O_RDONLY | O_NOFOLLOW_ANY',
    ...jail,
  },
  {
    name: "workspace: the last step follows links",
    file: `${ROOM}/directory.ts`,
    from: "await open(this.#pathOf(name), O_PATH | O_NOFOLLOW)",
    to: "await open(this.#pathOf(name), O_PATH)",
    ...jail,
    filter: "swaps folders and files",
  },
  {
    name: "workspace: handles are given up for paths",
    file: `${ROOM}/directory.ts`,
    from: 'this.#base = kind === "proc-handles" ? `/proc/self/fd/${handle.fd}` : path;',
    to: 'this.#base = path.startsWith("/proc/self/fd/") ? process.getBuiltinModule("node:fs").readlinkSync(`/proc/self/fd/${handle.fd}`) : path;',
    ...jail,
    filter: "swaps folders and files",
  },
  {
    name: "workspace: hard links are not looked at",
    file: `${ROOM}/read-file.ts`,
    from: "entry.stats.nlink === 1n",
    to: "entry.stats.nlink <= 9n",
    ...jail,
  },
  {
    name: "workspace: a name that is gone before the names are counted is not missed",
    file: `${ROOM}/hard-links.ts`,
    from: "if (kept !== undefined) return kept;",
    to: "if (kept !== undefined) return true;",
    tests: [`${ROOM}/hard-links.test.ts`],
  },
  {
    name: "workspace: a file that has one name left is taken for ours",
    file: `${ROOM}/hard-links.ts`,
    from: "if (before.nlink === 0n) return false;",
    to: "if (before.nlink <= 1n) return true;",
    tests: [`${ROOM}/hard-links.test.ts`],
  },
  {
    name: "workspace: a name that moves while we look counts twice",
    file: `${ROOM}/hard-links.ts`,
    from: "after.nlink === before.nlink && after.ctimeNs === before.ctimeNs",
    to: "after.nlink === before.nlink",
    tests: [`${ROOM}/hard-links.test.ts`],
  },
  {
    name: "workspace: a folder that moves while we look counts twice",
    file: `${ROOM}/hard-links.ts`,
    from: "names.add(`${directory.identity}/${files[index]}`)",
    to: "names.add(`${names.size}`)",
    tests: [`${ROOM}/hard-links.test.ts`],
  },
  {
    name: "workspace: inside is what begins with the same letters",
    file: `${ROOM}/workspace-path.ts`,
    from: "beginning.every((name, index) => components[index] === name)",
    to: 'components.join("/").startsWith(beginning.join("/"))',
    ...jail,
  },
  {
    name: "workspace: a link may climb above the top",
    file: `${ROOM}/way-down.ts`,
    from: "else if (result.pop() === undefined) throw refuseLink(start.path);",
    to: "else result.pop();",
    ...jail,
  },
  {
    name: "workspace: what is written over is not looked at",
    file: `${ROOM}/write-file.ts`,
    from: "      await refuseForeign(root, entry, path, search);\n",
    to: "",
    ...jail,
  },
  {
    name: "workspace: shared folders are checked when the config is read, and never again",
    file: `${ROOM}/shared-root.ts`,
    from: "if (agents !== undefined && above.includes(agents)",
    to: 'if (agents === "" && above.includes(agents)',
    ...jail,
  },
  {
    name: "workspace: what is shared for reading can be changed",
    file: `${ROOM}/workspace.ts`,
    from: "      this.#refuseReadOnly(root, path);\n",
    to: "",
    ...verbs,
  },
  {
    name: "workspace: the handles of the way down stay open",
    file: `${ROOM}/way-down.ts`,
    from: "      await current.close();\n      if (next",
    to: "      if (next",
    ...jail,
    filter: "descriptor",
  },
  {
    name: "workspace: a file is written in its place",
    file: `${ROOM}/write-file.ts`,
    from: "    await directory.move(partial, directory, name);\n",
    to: "    await directory.unlink(name).catch(() => {});\n    await directory.move(partial, directory, name);\n",
    ...verbs,
  },
  {
    name: "workspace: a shared path is taken at its word",
    file: "src/settings/shared-paths.ts",
    from: "const real = realPlace(place);",
    to: "const real = place;",
    tests: ["src/settings/shared-paths.test.ts"],
  },
];
