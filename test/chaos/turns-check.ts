import type { Run } from "../../src/contract/wire.ts";
import type { Witness } from "./turns-witness.ts";

interface ToldResult {
  readonly tool: string;
  readonly text: string;
  readonly failed: boolean;
}

/** Holds what the runs say against what was seen outside. `unknown`: calls of each run that the ledger calls unknown. */
export function checkTurns(
  runs: ReadonlyMap<string, Run>,
  witness: Pick<Witness, "done" | "keyed" | "answers">,
  unknown: ReadonlyMap<string, number>,
): { readonly problems: string[]; readonly counts: Record<string, number> } {
  const problems: string[] = [];
  const counts = { answered: 0, "done outside": 0, "fired once": 0, "outcome unknown": 0, "asked again": 0 };
  for (const [what, times] of witness.done) {
    counts["done outside"] += times;
    if (!what.startsWith("fire ")) continue;
    if (times > 1) problems.push(`${what} was done ${times} times: an unsafe call was repeated`);
    else counts["fired once"]++;
  }
  for (const [key, things] of witness.keyed)
    if (things.size > 1) problems.push(`under the key ${key} more than one thing was done: ${[...things].join(", ")}`);
  for (const [tool, most] of [
    ["fire", 2],
    ["put", 2],
  ] as const) {
    const done = [...witness.done.keys()].filter((what) => what.startsWith(`${tool} `));
    for (const [message, things] of Map.groupBy(done, (what) => what.slice(what.indexOf(" for "))))
      if (things.length > most)
        problems.push(`${tool}${message} was done ${things.length} times: an answer that was acted on was asked for again`);
  }
  for (const [id, run] of runs) {
    if (run.status !== "completed") {
      problems.push(`message ${id} is ${run.status}: ${run.error?.message}`);
      continue;
    }
    counts.answered++;
    const text = run.reply?.text ?? "";
    const prefix = `told go ${id}: `;
    if (!text.startsWith(prefix)) {
      problems.push(`message ${id} has the wrong answer: ${text.slice(0, 100)}`);
      continue;
    }
    const results = JSON.parse(text.slice(prefix.length)) as ToldResult[];
    if (results.length !== 6) problems.push(`message ${id} was told of ${results.length} calls`);
    const doubts = results.filter(({ text: said }) => said.startsWith("outcome unknown"));
    counts["outcome unknown"] += doubts.length;
    if (doubts.some(({ tool }) => tool !== "fire")) problems.push(`message ${id}: a call that may be repeated was given up`);
    if (doubts.length !== (unknown.get(run.id) ?? 0))
      problems.push(`message ${id}: ${doubts.length} calls are told as unknown, the ledger says ${unknown.get(run.id) ?? 0}`);
    for (const { text: said, failed } of results)
      if (failed && !said.startsWith("outcome unknown")) problems.push(`message ${id}: ${said}`);
    for (const { text: said } of results) {
      const [, what] = /"done": ?"([^"]+)"/.exec(said) ?? [];
      if (what && !witness.done.has(what)) problems.push(`message ${id} was told that ${what} was done, and it was not`);
    }
    counts["asked again"] += Math.max(0, (witness.answers.get(`go ${id}`) ?? 0) - 3);
  }
  return { problems, counts };
}
