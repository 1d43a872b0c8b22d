import { bold, type GlobalOptions, harmless, print, say } from "./terminal.ts";

const PROGRESS_MS = 10_000;
/** Of pairs of which there is nothing to tell. */
const MAX_LINES = 30;
const FINE = ["refused", "own"];

/** A line for each pair and kind; every attempt that was not as it should be; all of them with --json. */
export async function isolation(options: GlobalOptions): Promise<number> {
  if (!options.json) say("Trying every agent against every other, on a copy of this config…");
  // What is begun is cleared away when the process exits; a signal alone would not let it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
  const { testIsolation } = await import("../daemon/doctor/isolation/isolation.ts");
  let told = performance.now();
  const report = await testIsolation(options, (done, of) => {
    if (options.json || performance.now() - told < PROGRESS_MS) return;
    told = performance.now();
    say(`${done} of ${of} pairs tried`);
  });
  if (options.json) {
    print(JSON.stringify(report));
    return report.ok ? 0 : 1;
  }
  const { pairs, possiblePairs, blind, agents, quarantined } = report;
  print(bold(`isolation: ${report.ok ? "holds" : "FAILS"}`));
  const inVain = pairs.filter(({ attempts }) => attempts.every(({ outcome }) => FINE.includes(outcome)));
  const isLong = inVain.length > MAX_LINES;
  if (isLong) print(`ok    ${inVain.length} pairs   ${inVain.reduce((sum, { attempts }) => sum + attempts.length, 0)} attempts in vain`);
  for (const { attacker, victim, sees, attempts } of isLong ? pairs.filter((pair) => !inVain.includes(pair)) : pairs) {
    const wrong = attempts.filter(({ outcome }) => !FINE.includes(outcome));
    const verdict =
      wrong.length === 0 ? `${attempts.length} attempts in vain` : `${wrong.length} of ${attempts.length} attempts NOT refused`;
    print(
      harmless(`${wrong.length === 0 ? "ok  " : "FAIL"}  ${attacker} → ${victim}   ${verdict}${sees ? " (it may see its sessions)" : ""}`),
    );
    for (const { way, outcome, detail } of wrong) print(harmless(`      ${outcome}: ${way} (${detail})`));
  }
  if (pairs.length > 0) print(harmless(`\n${refusals(pairs.flatMap(({ attempts }) => attempts))}\n`));
  for (const kind of blind) print(`FAIL  ${kind}: agents do not find their own things there, so that the attempts show nothing`);
  const tried = pairs.reduce((sum, { attempts }) => sum + attempts.length, 0);
  const part = pairs.length < possiblePairs ? `, ${pairs.length} of ${possiblePairs} pairs, chosen in turn` : "";
  print(`${tried} attempts by ${agents.length} agent${agents.length === 1 ? "" : "s"}${part}`);
  if (pairs.length === 0) print("There is only one agent, so that there is nobody to try it against.");
  if (quarantined.length > 0) print(harmless(`Without their broken sections: ${quarantined.join(", ")}`));
  return report.ok ? 0 : 1;
}

interface Tried {
  readonly kind: string;
  readonly outcome: string;
  readonly detail: string;
}

/** By kind: how many attempts, and how they were answered. */
function refusals(attempts: readonly Tried[]): string {
  const rows = [...Map.groupBy(attempts, ({ kind }) => kind)].map(([kind, all]) => {
    const answers = Map.groupBy(all, ({ outcome, detail }) => (outcome === "own" ? "its own things only" : detail));
    const counted = [...answers].sort(([, a], [, b]) => b.length - a.length).map(([answer, same]) => `${answer} ×${same.length}`);
    const shown = counted.length > 4 ? [...counted.slice(0, 4), "…"] : counted;
    return `${kind.padEnd(14)}${String(all.length).padStart(6)}  ${shown.join(", ")}`;
  });
  return ["tried on       times  answered", ...rows].join("\n");
}
