import { expect, test } from "vitest";
import { readSource, type SourceFile } from "./architecture.ts";

const source = readSource(new URL("../src", import.meta.url).pathname);

/** Who may run a tool: one file does, one file asks it to, and the loop asks that one. */
const RUNNER = "abilities/tools/make-call.ts";
const CHOKE_POINT = "abilities/tools/settle-call.ts";
const LOOP = "turns/run-turn.ts";
/** Where tools are made, not run. */
const DEFINED = "abilities/tools/tool.ts";
/** Things that are run and are no tools. */
const OTHERS = /^(tx|sandboxes|written|command)$/;
const CALL = /(\w+)\)*[!?]?\.run(?:In)?(?: as [^()]*)?\)*[!?]?\.?\(/g;
const TAKEN_APART = /\{[^{}]*\brun(?:In)?\b[^{}]*\} = \w*tool\w*\b/gi;

function problemsOf(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const found: string[] = [];
    if (path !== CHOKE_POINT && /from "[./\w-]*\/make-call\.ts"/.test(text)) found.push("imports what runs tools");
    const asks = /import (?!type)[^;]*\bsettleCall\b[^;]*from "[./\w-]*\/settle-call\.ts"/.test(text);
    if (path !== LOOP && asks) found.push("settles calls");
    if (![RUNNER, CHOKE_POINT, DEFINED].includes(path) && /from "[./\w-]*\/(tool|toolbox|own-tool)\.ts"/.test(text)) {
      for (const [, receiver = ""] of text.matchAll(CALL)) if (!OTHERS.test(receiver)) found.push(`runs ${receiver}`);
      for (const [part] of text.matchAll(TAKEN_APART)) found.push(`takes a tool apart: ${part}`);
    }
    return found.map((problem) => `${path} ${problem}`);
  });
}

test("tools are run in one place, behind the rules, the approvals and the journal", () => {
  expect(problemsOf(source)).toEqual([]);
  expect(source.find(({ path }) => path === RUNNER)?.text).toContain("tool.run");
  expect(source.find(({ path }) => path === CHOKE_POINT)?.text).toContain("runIn(tx");
});

test.each([
  ["a call of a tool", 'import type { Tool } from "../abilities/tools/tool.ts";\nawait tool.run?.(args, context);'],
  ["one in brackets", 'import type { Tool } from "../abilities/tools/tool.ts";\nawait (tool as Tool).run!(args, context);'],
  ["one inside a transaction", 'import type { Tool } from "../abilities/tools/tool.ts";\nawait tool.runIn(tx, args, context);'],
  ["a tool that is taken apart", 'import type { Tool } from "../abilities/tools/tool.ts";\nconst { run } = tool;'],
  ["one from the toolbox", 'import { Toolbox } from "../abilities/tools/toolbox.ts";\nawait box.get(name)?.run(args, context);'],
  ["an import of the runner", 'import { made } from "../abilities/tools/make-call.ts";'],
  ["another loop", 'import { type CallParts, settleCall } from "../abilities/tools/settle-call.ts";'],
])("%s elsewhere is found", (_name, text) => {
  expect(problemsOf([...source, { path: "edges/planted/planted.ts", text }])).toHaveLength(1);
});
