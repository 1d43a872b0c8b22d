import { type Directory, during } from "./directory.ts";
import { codeOf, refuseLink } from "./refusals.ts";
import { startsWith, usableName } from "./workspace-path.ts";

/** As many as Linux itself follows. */
const MAX_LINKS = 40;

export interface Making {
  readonly mode: number;
  onMade?(): void;
}

/** Where a way down begins. */
export interface Start {
  readonly top: Directory;
  /** How absolute paths of the top begin: here, and for programs in a sandbox, which make links too. */
  readonly places: readonly string[];
  /** As the caller wrote it, for refusals. */
  readonly path: string;
}

/** What is left of the way: names that must be there, then names that may be made. */
interface Way {
  readonly head: readonly string[];
  readonly tail: readonly string[];
}

/**
 * Down to a folder, one name at a time. The system follows no link for us: where there is one, its words are read, and the way begins
 * again from the top with them in its place. So a link inside the workspace works, one that leads out of it is refused by what it says,
 * before anything is touched, and a name that turns into a link meanwhile gains nothing.
 */
export async function descend(start: Start, components: readonly string[], making?: Making): Promise<Directory> {
  // What a link points to is not made for it: a dangling one leads nowhere.
  let way: Way = making ? { head: [], tail: components } : { head: components, tail: [] };
  for (let links = 0; ; links++) {
    const reached = await walkDown(start.top, way, making);
    if (typeof reached !== "number") return reached;
    way = await around(start, way, reached, links);
  }
}

/** The folder and the name of something that is no link, or was none when we looked. Whatever it is then used for looks again. */
export async function findFile(
  start: Start,
  components: readonly string[],
): Promise<{ readonly directory: Directory; readonly name: string }> {
  let way: Way = { head: components, tail: [] };
  for (let links = 0; ; links++) {
    const last = way.head.length - 1;
    const above = await walkDown(start.top, { head: way.head.slice(0, -1), tail: [] });
    if (typeof above === "number") {
      way = await around(start, way, above, links);
      continue;
    }
    const name = way.head[last];
    // A link to the top itself.
    if (name === undefined) return { directory: above, name: "." };
    if (!(await isLink(above, name))) return { directory: above, name };
    await above.close();
    way = await around(start, way, last, links);
  }
}

/** The folder at the end, or the index of the first name that is a link. */
async function walkDown(top: Directory, { head, tail }: Way, making?: Making): Promise<Directory | number> {
  let current = top.borrowed();
  try {
    for (const [index, name] of [...head, ...tail].entries()) {
      const next = await step(current, name, index >= head.length ? making : undefined);
      await current.close();
      if (next === "link") return index;
      current = next;
    }
    return current;
  } catch (error) {
    await current.close().catch(() => {});
    throw error;
  }
}

async function step(from: Directory, name: string, making: Making | undefined): Promise<Directory | "link"> {
  try {
    return await from.directory(name);
  } catch (error) {
    if (["ENOTDIR", "ELOOP"].includes(codeOf(error)) && (await isLink(from, name))) return "link";
    if (codeOf(error) !== "ENOENT" || !making) throw error;
  }
  try {
    await from.make(name, making.mode);
    making.onMade?.();
  } catch (error) {
    // Somebody else made it meanwhile: opening it tells what it is.
    if (codeOf(error) !== "EEXIST") throw error;
  }
  return from.directory(name);
}

function isLink(from: Directory, name: string): Promise<boolean> {
  return from.lstat(name).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
}

/** The way with a link's words in its place. */
async function around(start: Start, { head, tail }: Way, index: number, links: number): Promise<Way> {
  if (links >= MAX_LINKS) throw refuseLink(start.path);
  const names = [...head, ...tail];
  const before = names.slice(0, index);
  const above = await walkDown(start.top, { head: before, tail: [] });
  // What was a folder a moment ago is a link by now.
  if (typeof above === "number") throw refuseLink(start.path);
  const words = await during(Promise.resolve(above), (folder) => folder.linkText(names[index] as string));
  const meant = meantBy(start, before, words);
  if (index < head.length) return { head: [...meant, ...head.slice(index + 1)], tail };
  return { head: meant, tail: tail.slice(index - head.length + 1) };
}

/** Where a link's words lead, counted from the top. */
function meantBy(start: Start, before: readonly string[], words: string): string[] {
  const names = words.split("/");
  if (!names.every(usableName)) throw refuseLink(start.path);
  if (!words.startsWith("/")) return joined(start, before, names);
  const whole = joined(start, [], names);
  const beginnings = start.places.map((place) => place.split("/").filter((name) => name !== ""));
  const [place] = beginnings.filter((beginning) => startsWith(whole, beginning)).sort((a, b) => b.length - a.length);
  if (place === undefined) throw refuseLink(start.path);
  return whole.slice(place.length);
}

function joined(start: Start, before: readonly string[], names: readonly string[]): string[] {
  const result = [...before];
  for (const name of names) {
    if (name === "" || name === ".") continue;
    if (name !== "..") result.push(name);
    else if (result.pop() === undefined) throw refuseLink(start.path);
  }
  return result;
}
