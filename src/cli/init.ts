import { createInterface } from "node:readline/promises";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface InitOptions extends GlobalOptions {
  readonly yes?: boolean;
}

const NOTHING_ASKED = { id: "main", personality: "" };

export async function init(options: InitOptions): Promise<number> {
  const { hasConfig, initHome } = await import("../daemon/local-init.ts");
  const asks = options.yes !== true && options.json !== true && process.stdin.isTTY === true && !hasConfig(options);
  const first = asks ? await ask() : NOTHING_ASKED;
  if (first === null) {
    say("\nnothing was made");
    return 1;
  }
  const { home, config, agent, made } = initHome(options, first);
  if (options.json) {
    print(JSON.stringify({ home, config, agent, made }));
    return 0;
  }
  print(harmless(made.length === 0 ? `${home} is set up already; nothing was changed` : `${bold(home)} is ready; made ${made.join(", ")}`));
  print(
    harmless(
      `  agent    ${agent}\n  config   ${config}\n  next     guildhall chat · guildhall start · guildhall agents add coder --tools coding`,
    ),
  );
  return 0;
}

/** Null: whoever was asked has left, with Ctrl-C or Ctrl-D. */
async function ask(): Promise<{ readonly id: string; readonly personality: string } | null> {
  const { idProblem } = await import("../daemon/local-init.ts");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    for (;;) {
      const id = (await terminal.question("What is your agent called? [main] ")).trim() || "main";
      const problem = idProblem(id);
      if (problem === null) return { id, personality: (await terminal.question("What should it be like? [say nothing] ")).trim() };
      say(problem);
    }
  } catch (error) {
    if ((error as Error).name === "AbortError") return null;
    throw error;
  } finally {
    terminal.close();
  }
}
