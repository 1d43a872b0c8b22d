import { fork } from "node:child_process";
import { once } from "node:events";
import { extname } from "node:path";
import { Failure } from "../kernel/failure.ts";
import { isStarted } from "../kernel/is-started.ts";
import { type ConfigProblem, configFailure } from "./config-problem.ts";
import type { Environment } from "./home.ts";
import type { ParsedYaml } from "./yaml-source.ts";

export interface ToParse {
  readonly text: string;
  readonly file: string;
  /** What `${NAME}` stands for; null: it is text like any other. */
  readonly names: Environment | null;
}
export type ParsedAside = { readonly parsed: ParsedYaml } | { readonly problems: readonly ConfigProblem[] };

/** Below it, starting a process takes longer than the parsing. */
export const WORTH_A_PROCESS = 32 * 1024;

const TOO_MANY = "Too many files or processes are open: close some, or raise the limits (`ulimit -n`, `ulimit -u`).";

/**
 * Parses in a process of its own. With 1,000 agents it takes a third of a second and 100 MiB of garbage: a daemon that takes up a new config
 * must go on answering meanwhile, and be no larger afterwards. (A thread leaves 60 MiB behind in the allocator's arenas.)
 */
export async function parseYamlAside(toParse: ToParse): Promise<ParsedYaml> {
  const program = new URL(`./parse-aside-worker${extname(import.meta.url)}`, import.meta.url);
  const child = fork(program, { serialization: "advanced", execArgv: [], env: {}, stdio: ["ignore", "ignore", "ignore", "ipc"] });
  if (!isStarted(child)) throw new Failure("home.unusable", "no process can be started to parse the config", { hint: TOO_MANY });
  const ended = new AbortController();
  try {
    child.send(toParse);
    const died = once(child, "exit", { signal: ended.signal }).then(([code, signal]) => {
      throw new Failure("internal.bug", `the process that parses the config ended (${signal ?? code})`);
    });
    const [answer] = (await Promise.race([once(child, "message", { signal: ended.signal }), died])) as [ParsedAside];
    if ("problems" in answer) throw configFailure(answer.problems);
    return answer.parsed;
  } finally {
    ended.abort();
    child.kill("SIGKILL");
  }
}
