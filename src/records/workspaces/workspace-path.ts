import { Failure } from "../../kernel/failure.ts";

const MAX_PATH_BYTES = 4_096;
const MAX_NAME_BYTES = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is what this is for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** Whether a path may hold it: no control characters, nothing longer than file systems allow. */
export function usableName(name: string): boolean {
  return !CONTROL.test(name) && name.isWellFormed() && Buffer.byteLength(name) <= MAX_NAME_BYTES;
}

/**
 * The components of a path, counted from where it starts; `..` is taken at its word, and may not lead above that. Links need no
 * thought here: the way down goes through none.
 */
export function componentsOf(path: string): string[] {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw new Failure("workspace.malformed", `the path is longer than ${MAX_PATH_BYTES} bytes`);
  const components: string[] = [];
  for (const name of path.split("/")) {
    if (!usableName(name))
      throw new Failure("workspace.malformed", `${quoted(path)} has a part that is too long or holds control characters`);
    if (name === "" || name === ".") continue;
    if (name !== "..") components.push(name);
    else if (components.pop() === undefined) throw new Failure("workspace.outside", `${quoted(path)} leads out of the workspace`);
  }
  return components;
}

export function startsWith(components: readonly string[], beginning: readonly string[]): boolean {
  return beginning.every((name, index) => components[index] === name);
}

/** As it may be shown: short, and nothing in it that a terminal would obey. */
export function quoted(path: string): string {
  const short = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return JSON.stringify(short).replaceAll(/[\u007f-\u009f]/g, "\ufffd");
}
