import { join } from "node:path";
import { runChild } from "../child.ts";
import type { BenchOptions } from "../main.ts";
import type { Section } from "../report.ts";
import { interleave, ratios, spread } from "../spread.ts";
import type { ReadsResult, ReadsTask } from "./reads-worker.ts";

/** Point reads, one after another. For information: nothing waits for them but their caller. */
export async function reads({ rounds, progress }: BenchOptions, folder: string): Promise<Section> {
  let files = 0;
  const side = (side: ReadsTask["side"]) => async (): Promise<number> => {
    const task: ReadsTask = { side, path: join(folder, `reads-${files++}.db`), rows: 10_000, reads: 200_000 };
    return (await runChild<ReadsResult>("store/reads-worker.ts", task)).perSecond;
  };
  const { store, raw } = await interleave({ store: side("store"), raw: side("raw") }, rounds, (line) => progress(`store reads, ${line}`));
  return {
    title: "Point reads",
    notes: ["SQLite, by primary key."],
    figures: [
      {
        name: "store.read.get",
        unit: "/s",
        value: spread(store),
        against: { name: "raw prepared statement", value: spread(raw) },
        ratio: ratios(store, raw),
      },
    ],
  };
}
