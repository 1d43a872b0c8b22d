import { expect, test } from "vitest";
import { parseHook } from "./guard-hook.ts";

test("different programs name the same things differently", () => {
  const claude = { session_id: "s", cwd: "/r", tool_name: "NotebookEdit", tool_input: { notebook_path: "/r/a.ipynb" } };
  expect(parseHook(JSON.stringify(claude))).toMatchObject({ session: "s", folder: "/r", files: ["/r/a.ipynb"], wantsJson: false });
  const cursor = { conversation_id: "c", workspace_roots: ["/r"], tool_input: JSON.stringify({ file_path: "a.ts" }) };
  expect(parseHook(JSON.stringify(cursor))).toMatchObject({ session: "c", folder: "/r", files: ["a.ts"], wantsJson: true });
  const patch = "*** Begin Patch\n*** Update File: a b.ts\n*** Move to: c.ts\n*** Delete File: d.ts\n*** End Patch";
  expect(parseHook(JSON.stringify({ tool_input: { command: ["apply_patch", patch] } }))?.files).toEqual(["a b.ts", "c.ts", "d.ts"]);
});

test.each(["", "null", "[]", "7", "{", '"x"'])("%j is no hook", (text) => {
  expect(parseHook(text)).toBeUndefined();
});

test.each([{}, { tool_input: null }, { tool_input: 7 }, { tool_input: { edits: [null, 3] } }, { tool_input: { file_path: { a: 1 } } }])(
  "%j names no file",
  (call) => {
    expect(parseHook(JSON.stringify(call))?.files).toEqual([]);
  },
);
