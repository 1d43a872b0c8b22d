import { expect, test } from "vitest";
import { problemsOf, readSource, type SourceFile } from "./architecture.ts";

const source = readSource(new URL("../src", import.meta.url).pathname);

test("the source keeps to the plan of the house", () => {
  expect(problemsOf(source)).toEqual([]);
});

const planted: readonly [string, SourceFile][] = [
  ["an upward import", { path: "kernel/planted.ts", text: 'import { Store } from "../store/store.ts";' }],
  ["a sideways import", { path: "records/sessions/planted.ts", text: 'import { x } from "../agents/x.ts";' }],
  ["an upward import of a type", { path: "store/planted.ts", text: 'import type { Turn } from "../turns/turn.ts";' }],
  ["a lazy upward import", { path: "store/planted.ts", text: 'const turns = await import("../turns/turn.ts");' }],
  ["a re-export from above", { path: "acts/planted.ts", text: 'export { run } from "../turns/turn.ts";' }],
  ["a cycle", { path: "store/planted.ts", text: 'import "./planted.ts";' }],
  ["an environment read", { path: "store/planted.ts", text: "const home = process.env.HOME;" }],
  ["a file over 500 lines", { path: "store/planted.ts", text: "\n".repeat(501) }],
  ["a getter in a literal", { path: "store/planted.ts", text: "export const made = () => ({\n  get late() {\n    return 1;\n  },\n});" }],
  ["a name that says nothing", { path: "store/utils.ts", text: "" }],
  ["a room without a README", { path: "records/planted/planted.ts", text: "" }],
  ["a package in contract", { path: "contract/planted.ts", text: 'import pg from "pg";' }],
  ["an eager import of the daemon by the cli", { path: "cli/planted.ts", text: 'import { start } from "../daemon/daemon.ts";' }],
];

test.each(planted)("%s is found", (_name, file) => {
  expect(problemsOf([...source, file]).some((problem) => problem.includes(file.path.split("/").slice(0, -1).join("/")))).toBe(true);
  expect(problemsOf([...source, file]).length).toBeGreaterThan(problemsOf(source).length);
});
