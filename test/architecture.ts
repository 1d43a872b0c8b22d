import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";

/** The floors of the house, from the ground. Rooms inside a group are rooms of their own. */
export const FLOORS: readonly (readonly string[])[] = [
  ["contract"],
  ["kernel"],
  ["store", "settings"],
  ["deciders"],
  ["records"],
  ["acts"],
  ["abilities"],
  ["turns"],
  ["drivers"],
  ["edges"],
  ["daemon"],
];
const GROUPS = new Set(["deciders", "records", "abilities", "drivers", "edges"]);
/** Rooms outside the floors, and the only rooms they may import. `cli` and `library` may also load `daemon`, lazily. */
const OUTSIDE: Readonly<Record<string, readonly string[]>> = {
  client: ["contract"],
  cli: ["contract", "client"],
  // The port of channels is the kernel's: a program that brings one throws its errors.
  library: ["contract", "client", "kernel"],
};
const MAY_LOAD_DAEMON: readonly string[] = ["cli", "library"];
const MAY_READ_ENVIRONMENT = ["settings", "daemon", "cli"];
const FORBIDDEN_NAMES = /^(utils?|helpers?|types|misc|common|manager|service)\.ts$/;
const MAX_LINES = 500;
const MAX_README_LINES = 40;
/** Each object with a getter in its literal gets a shape of its own, which outlives it (docs/decisions/004-http.md): only what is made once may be one. */
const MADE_ONCE = ["records/agents/agent.ts", "drivers/dispatch/agents-here.ts", "abilities/tools/tool.ts"];

const IMPORT = /(?:import|export)\s+(?:type\s+)?(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']|(import)\(\s*["']([^"']+)["']\s*\)/g;

export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export function readSource(folder: string): SourceFile[] {
  const files: SourceFile[] = [];
  const walk = (directory: string): void => {
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      if (statSync(path).isDirectory()) walk(path);
      else if (/\.ts$|README\.md$/.test(name)) files.push({ path: relative(folder, path), text: readFileSync(path, "utf8") });
    }
  };
  walk(folder);
  return files;
}

export function roomOf(path: string): string {
  const [first = "", second = ""] = path.split("/");
  return GROUPS.has(first) ? `${first}/${second}` : first;
}

function floorOf(room: string): number {
  return FLOORS.findIndex((rooms) => rooms.includes(room.split("/")[0] as string));
}

/** Everything in which the source departs from the plan of the house, one sentence each. */
export function problemsOf(files: readonly SourceFile[]): string[] {
  const code = files.filter((file) => file.path.endsWith(".ts"));
  const production = code.filter((file) => !file.path.endsWith(".test.ts"));
  return [
    ...code.flatMap(importProblems),
    ...cycles(production),
    ...production.flatMap(environmentProblems),
    ...production.flatMap(getterProblems),
    ...code.flatMap(sizeAndNameProblems),
    ...roomProblems(files),
  ];
}

function importsOf(file: SourceFile): { readonly target: string; readonly lazy: boolean }[] {
  return [...file.text.matchAll(IMPORT)].map(([, eager, lazy, dynamic]) => ({
    target: (eager ?? dynamic) as string,
    lazy: lazy !== undefined,
  }));
}

function importProblems(file: SourceFile): string[] {
  const from = roomOf(file.path);
  return importsOf(file).flatMap(({ target, lazy }) => {
    if (!target.startsWith(".")) {
      return from === "contract" && target !== "zod" && !file.path.endsWith(".test.ts")
        ? [`${file.path} imports ${target}: contract imports zod only`]
        : [];
    }
    const to = roomOf(normalize(join(dirname(file.path), target)));
    if (to === from) return [];
    const allowed = OUTSIDE[from];
    if (allowed) {
      const permitted = allowed.includes(to) || (MAY_LOAD_DAEMON.includes(from) && to === "daemon" && lazy);
      return permitted ? [] : [`${file.path} imports ${to}: ${from} may import ${allowed.join(" and ")} only`];
    }
    if (floorOf(to) < 0) return [`${file.path} imports ${to}, which is on no floor`];
    return floorOf(to) < floorOf(from) ? [] : [`${file.path} imports ${to}: only lower floors may be imported`];
  });
}

function environmentProblems(file: SourceFile): string[] {
  if (MAY_READ_ENVIRONMENT.includes(roomOf(file.path))) return [];
  return /process\.env|from "node:process"|import\.meta\.env/.test(file.text) ? [`${file.path} reads the environment`] : [];
}

function getterProblems({ path, text }: SourceFile): string[] {
  if (MADE_ONCE.includes(path)) return [];
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    const indent = /^( +)get \w+\(\)/.exec(line)?.[1]?.length;
    if (indent === undefined) return [];
    const around = lines.slice(0, index).findLast((before) => before.trim() !== "" && before.search(/\S/) < indent);
    return /\bclass\b/.test(around ?? "") ? [] : [`${path}:${index + 1} has a getter in a literal`];
  });
}

function sizeAndNameProblems(file: SourceFile): string[] {
  const name = file.path.split("/").at(-1) as string;
  const lines = file.text.split("\n").length;
  return [
    ...(lines > MAX_LINES ? [`${file.path} has ${lines} lines, more than ${MAX_LINES}`] : []),
    ...(FORBIDDEN_NAMES.test(name) ? [`${file.path}: the name says nothing`] : []),
    ...(/^[a-z0-9-]+(\.test)?\.ts$/.test(name) ? [] : [`${file.path} is not kebab-case`]),
  ];
}

function roomProblems(files: readonly SourceFile[]): string[] {
  const rooms = new Set(files.filter((file) => file.path.includes("/")).map((file) => roomOf(file.path)));
  return [...rooms].flatMap((room) => {
    const readme = files.find((file) => file.path === `${room}/README.md`);
    if (!readme) return [`${room} has no README.md`];
    const lines = readme.text.trimEnd().split("\n").length;
    return lines > MAX_README_LINES ? [`${room}/README.md has ${lines} lines, more than ${MAX_README_LINES}`] : [];
  });
}

function cycles(files: readonly SourceFile[]): string[] {
  const known = new Map(files.map((file) => [file.path, file]));
  const state = new Map<string, "open" | "done">();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === "open") found.push(`import cycle: ${[...trail.slice(trail.indexOf(path)), path].join(" → ")}`);
    if (state.has(path)) return;
    state.set(path, "open");
    for (const { target } of importsOf(known.get(path) as SourceFile)) {
      if (!target.startsWith(".")) continue;
      const next = normalize(join(dirname(path), target));
      if (known.has(next)) visit(next, [...trail, path]);
    }
    state.set(path, "done");
  };
  for (const path of known.keys()) visit(path, []);
  return found;
}
