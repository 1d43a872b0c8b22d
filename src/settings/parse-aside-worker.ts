import { isFailure } from "../kernel/failure.ts";
import type { ConfigProblem } from "./config-problem.ts";
import type { ParsedAside, ToParse } from "./parse-aside.ts";
import { parseYaml } from "./yaml-source.ts";

function answer({ text, file, names }: ToParse): ParsedAside {
  try {
    return { parsed: parseYaml(text, file, names && ((name) => names[name])) };
  } catch (error) {
    if (isFailure(error, "config.invalid")) return { problems: error.details.problems as readonly ConfigProblem[] };
    throw error;
  }
}

process.once("message", (toParse) => process.send?.(answer(toParse as ToParse)));
