import { inBlock, summary } from "./config.ts";
import { type GlobalOptions, harmless, print } from "./terminal.ts";

const WRONG_WORKFLOW = 2;

export async function checkWorkflow(what: string, options: GlobalOptions): Promise<number> {
  const { checkWorkflowFile } = await import("../daemon/local-workflow.ts");
  const { ok, file, problems } = await checkWorkflowFile(options, what);
  if (options.json) print(JSON.stringify({ ok, file, problems: problems.map(({ source: _source, ...problem }) => problem) }));
  else {
    const shown = problems.map((problem) => ({
      ...problem,
      path: problem.path.join("."),
      file,
      line: problem.line ?? 1,
      column: problem.column ?? 1,
      fix: problem.fix ?? "",
    }));
    for (const problem of shown) print(`${harmless(inBlock(problem))}\n`);
    print(harmless(summary(shown, file, true)));
  }
  return ok ? 0 : WRONG_WORKFLOW;
}
