import type { PlantedBug } from "./bugs.ts";

const RELAY = "src/records/workflows/relay-of.ts";
const relay = { tests: ["test/contract/relay.test.ts"] };

export const RELAY_BUGS: readonly PlantedBug[] = [
  {
    name: "a parent is supposed to forget what it has read",
    file: RELAY,
    from: "context += at(handed, level) + at(results, level);",
    to: "context = at(handed, level) + at(results, level);",
    ...relay,
  },
  {
    name: "what a step is shown of a long value counts in full",
    file: RELAY,
    from: "Math.min(SHOWN_OF_ONE_READ, size)",
    to: "size",
    ...relay,
  },
  {
    name: "what steps ask for besides is not counted",
    file: RELAY,
    from: "tokensOfBytes(shownAtFirst(read) + (await readByCalls(reads, id)))",
    to: "tokensOfBytes(shownAtFirst(read))",
    ...relay,
  },
];
