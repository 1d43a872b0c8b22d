import { createInterface, type Interface } from "node:readline/promises";
import { askForModel, type Question } from "./init-model.ts";
import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

interface InitOptions extends GlobalOptions {
  readonly yes?: boolean;
  readonly provider?: string;
}

interface First {
  readonly id: string;
  readonly personality: string;
  readonly model?: string | undefined;
}

const NOTHING_ASKED: First = { id: "main", personality: "" };

export async function init(options: InitOptions): Promise<number> {
  const { hasConfig, initHome, takeKeyAt, whoAnswersAt } = await import("../daemon/local-init.ts");
  // Before anything is made: a key that is not accepted leaves no trace.
  const taken = options.provider === undefined ? null : await takeKeyAt(options, options.provider, await givenKey(options.provider));
  const asks = options.yes !== true && options.json !== true && process.stdin.isTTY === true && !hasConfig(options);
  const asked = asks ? await ask(options, taken?.model) : NOTHING_ASKED;
  if (asked === null) {
    say("\nnothing was made");
    return 1;
  }
  const first = { ...asked, model: taken?.model ?? asked.model };
  const { home, config, agent, made } = initHome(options, first);
  const key = taken?.file === null || taken?.file === undefined ? {} : { key: taken.file };
  if (options.json) {
    print(JSON.stringify({ home, config, agent, made, ...key, ...(first.model === undefined ? {} : { model: first.model }) }));
    return 0;
  }
  print(harmless(made.length === 0 ? `${home} is set up already; nothing was changed` : `${bold(home)} is ready; made ${made.join(", ")}`));
  if (key.key !== undefined) print(harmless(`  key      accepted by ${options.provider}, and saved in ${key.key}`));
  const model = await whoAnswersAt(options, agent);
  const how = model === "offline/demo" ? ", a script; `guildhall init --provider anthropic` for a real one" : "";
  print(
    harmless(
      `  agent    ${agent}\n  model    ${model}${how}\n  config   ${config}\n  next     guildhall chat · guildhall workflow run example --input topic=tea\n           guildhall start · guildhall agents add coder --tools coding`,
    ),
  );
  return 0;
}

/** Never as an argument: those are seen by everybody on the machine. Null: nothing was said, and what is set already counts. */
async function givenKey(provider: string): Promise<string | null> {
  if (process.stdin.isTTY) {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const key = await asking(terminal)(`The key for ${provider} (not shown) [the one that is set]: `, true);
    terminal.close();
    return key.trim() || null;
  }
  let text = "";
  for await (const piece of process.stdin) text += String(piece);
  return text.trim() || null;
}

/** Null: whoever was asked has left, with Ctrl-C or Ctrl-D. */
async function ask(options: InitOptions, model: string | undefined): Promise<First | null> {
  const { idProblem, KEYED_PROVIDERS, modelsAt, takeKeyAt } = await import("../daemon/local-init.ts");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    for (;;) {
      const id = (await terminal.question("What is your agent called? [main] ")).trim() || "main";
      const problem = idProblem(id);
      if (problem !== null) {
        say(problem);
        continue;
      }
      const personality = (await terminal.question("What should it be like? [say nothing] ")).trim();
      if (model !== undefined) return { id, personality };
      const place = {
        ...(await modelsAt(options)),
        providers: KEYED_PROVIDERS,
        take: (provider: string, key: string) => takeKeyAt(options, provider, key),
      };
      return { id, personality, model: await askForModel(asking(terminal), place) };
    }
  } catch (error) {
    if ((error as Error).name === "AbortError") return null;
    throw error;
  } finally {
    terminal.close();
  }
}

/** What is typed while `hidden` is not echoed. */
function asking(terminal: Interface): Question {
  return async (text, hidden = false) => {
    if (!hidden) return terminal.question(text);
    process.stderr.write(text);
    const shown = process.stderr.write;
    const answer = terminal.question("");
    process.stderr.write = () => true;
    try {
      return await answer;
    } finally {
      process.stderr.write = shown;
      process.stderr.write("\n");
    }
  };
}
