import type { PlantedBug } from "./bugs.ts";

const SETTLE = "src/abilities/tools/settle-call.ts";
const LOOP = "src/turns/run-turn.ts";
const CHAOS = ["test/chaos/turns.test.ts"];

/** Caught by killing daemons at every line of a turn and counting outside what was done. */
export const TURN_BUGS: readonly PlantedBug[] = [
  {
    name: "an unsafe call that was begun before a crash is made again",
    file: SETTLE,
    from: 'if (record?.state === "intended" && record.effect === "unsafe") return outcomeUnknown(turn, call);',
    to: "",
    tests: CHAOS,
    filter: "sqlite",
  },
  {
    name: "an unsafe call is made before it is written down",
    file: SETTLE,
    from: 'if (tool.effect !== "pure" && !intended) await turn.journal.intend(call);',
    to: 'if (tool.effect === "keyed" && !intended) await turn.journal.intend(call);',
    tests: CHAOS,
    filter: "sqlite",
  },
  {
    name: "an answer is acted on before it is recorded",
    file: LOOP,
    from: "await turn.journal.response(step, response);",
    to: "",
    tests: CHAOS,
    filter: "sqlite",
  },
];
