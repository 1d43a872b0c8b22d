import type { Failure } from "../kernel/failure.ts";
import type { Log } from "../kernel/log.ts";
import { type ConfigProblem, inWords } from "../settings/config-problem.ts";
import type { Settings } from "../settings/load-settings.ts";

/** Loudly, and each by name: the others run on. */
export function tellQuarantined(log: Log, { quarantined }: Settings, before?: Settings): void {
  for (const [agent, problems] of quarantined) {
    const told = problems.map(inWordsWithFix).join("; ");
    if (told === before?.quarantined.get(agent)?.map(inWordsWithFix).join("; ")) continue;
    log.error("an agent is quarantined: its section of the config is broken; the others go on", { agent, problems: told });
  }
}

/** What can hardly be meant; nothing is refused for it. */
export function tellWarnings(log: Log, { warnings }: Settings, before?: Settings): void {
  const told = new Set(before?.warnings.map(inWordsWithFix));
  for (const problem of warnings)
    if (!told.has(inWordsWithFix(problem))) log.warn("the config can hardly be meant so", { problem: inWordsWithFix(problem) });
}

/** Everything that a text was refused for, with what to do about it. */
export function refusalInWords(failure: Failure): string {
  const problems = (failure.details.problems ?? []) as readonly ConfigProblem[];
  return problems.length > 0 ? problems.map(inWordsWithFix).join("; ") : `${failure.message} ${failure.hint}`;
}

function inWordsWithFix(problem: ConfigProblem): string {
  return `${inWords(problem)}${problem.fix === "" ? "" : ` ${problem.fix}`}`;
}
