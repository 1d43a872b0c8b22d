import { recall } from "../../abilities/tools/memory/recall.ts";
import type { ContextPart } from "../../records/journal/contexts.ts";
import type { Memory } from "../../records/memory/memory.ts";
import type { PartSource } from "../open-turn.ts";

/** MEMORY.md, and of the notes those that matter for this message. Whoever may not search them is told nothing of them. */
export function memorySource(memory: Memory, home: string): PartSource {
  return async ({ agent, revision, run, mayUse }) => {
    const { file, notes, labels } = await recall(memory, home, {
      agent,
      revision,
      address: run.address,
      input: run.input,
      mayRecall: mayUse("memory_search"),
    });
    const parts: ContextPart[] = file === null ? [] : [{ name: "memory", text: `What is written down for you (MEMORY.md):\n${file}` }];
    return notes === null ? parts : [...parts, { name: "notes", text: notes, fleeting: true, labels }];
  };
}
