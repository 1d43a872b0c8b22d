import type { PlantedBug } from "./bugs.ts";

const WAKE = "src/acts/wake-agent.ts";
const WAKES = "src/records/mailbox/wakes.ts";
const OPEN = "src/acts/open-mail.ts";
const SEND = "src/acts/send-mail.ts";
const RECEIVE = "src/records/mailbox/receive-mail.ts";
const CONTEXT = "src/abilities/tools/context/context-tools.ts";
const wakes = { tests: ["test/contract/wake-mail.test.ts"], filter: "SQLite" };
const opens = { tests: ["test/contract/open-mail.test.ts"], filter: "SQLite" };
const shares = { tests: ["test/contract/context-tools.test.ts"], filter: "SQLite" };
const agrees = { tests: ["test/contract/coordination-tools.test.ts"], filter: "SQLite" };

/** Bugs in what agents share, write to each other and agree on in their turns. */
export const MAIL_TURN_BUGS: readonly PlantedBug[] = [
  {
    name: "waking: every mail starts a turn of its own",
    file: WAKE,
    from: 'for (const { run } of states) if (run !== null && (await isWaiting(tx, run))) return "waiting";',
    to: "",
    ...wakes,
  },
  {
    name: "waking: nobody counts the turns of an hour",
    file: WAKE,
    from: "states.filter(({ left }) => left > 0)",
    to: "states.filter(({ left }) => left > Number.NEGATIVE_INFINITY)",
    ...wakes,
  },
  {
    name: "waking: two agents may wake each other for ever",
    file: WAKES,
    from: "where wake_chains.wakes < ${WAKES_PER_ROOT}`",
    to: "where wake_chains.wakes < ${WAKES_PER_ROOT * 1_000}`",
    ...wakes,
  },
  {
    name: "waking: mail of a turn begins a chain of its own",
    file: SEND,
    from: "root: caller.run === null ? null : await rootOf(tx, caller.run)",
    to: "root: caller.run === null ? null : await rootOf(tx, caller.run).then(() => null)",
    ...wakes,
  },
  {
    name: "waking: a turn that has opened its mail counts as one that will",
    file: OPEN,
    from: "if (waking) await endWake(tx, caller.name, caller.run as string);",
    to: "",
    ...wakes,
  },
  {
    name: "waking: what somebody has stopped starts again by itself",
    file: OPEN,
    from: 'fence, 0, because === "stopped")',
    to: 'fence, 0, because !== "stopped" && false)',
    ...wakes,
  },
  {
    name: "waking: archived agents are woken",
    file: WAKE,
    from: "standing.filter(({ standstill }) => standstill === null || !refuses(standstill))",
    to: "standing.filter(({ standstill }) => standstill === null || refuses(standstill) || !refuses(standstill))",
    ...wakes,
  },
  {
    name: "opened mail: a turn is told of more than it can bear",
    file: RECEIVE,
    from: "return place > 0 && left < 0;",
    to: "return place > 1_000 && left < 0;",
    ...opens,
  },
  {
    name: "opened mail: everything is urgent",
    file: RECEIVE,
    from: 'urgentOnly ? code("and m.priority > 0") : NOTHING',
    to: 'urgentOnly ? code("and m.priority >= 0") : NOTHING',
    ...opens,
  },
  {
    name: "opened mail: what is late takes the turn's commit with it",
    file: OPEN,
    from: "await mailbox.ackIn(tx, caller, id, fence).catch(unlessStale);",
    to: "await mailbox.ackIn(tx, caller, id, fence);",
    ...opens,
  },
  {
    name: "opened mail: a line of it may look like two",
    file: OPEN,
    from: ".replace(OTHER_LINE_ENDS, (end) =>",
    to: '.replace("\\n", (end) =>',
    ...opens,
  },
  {
    name: "opened mail: words from outside do not mark the turn",
    file: OPEN,
    from: 'labels: received.some(({ label }) => label === "external") ? ["external"] : [],',
    to: "labels: [],",
    ...opens,
  },
  {
    name: "labels: a guest's mail is trusted",
    file: SEND,
    from: 'caller.kind === "guest" || (await',
    to: "(await",
    ...agrees,
  },
  {
    name: "labels: what a turn has read does not mark its mail",
    file: SEND,
    from: "external: external || known.external",
    to: "external: known.external",
    ...agrees,
  },
  {
    name: "labels: external mail that is taken outside a turn is forgotten",
    file: "src/acts/take-mail.ts",
    from: "if (isNews(caller, mail)) await pools.noteExternalIn(tx, caller);\n      await",
    to: "await",
    ...agrees,
  },
  {
    name: "labels: a vote needs nobody, whatever the turn has read",
    file: "src/abilities/tools/coordination/agreement-tools.ts",
    from: "consequential: true,",
    to: "consequential: false,",
    ...agrees,
  },
  {
    name: "labels: what a turn has read does not mark its entries",
    file: CONTEXT,
    from: '{ external: labels.has("external"), ...grantOf(context) }',
    to: "{ external: labels.size > 100, ...grantOf(context) }",
    ...shares,
  },
  {
    name: "labels: reading an external entry does not mark the turn",
    file: CONTEXT,
    from: 'return entries.some(({ label }) => label === "external") ? ["external"] : [];',
    to: 'return entries.some(({ label }) => label !== "external" && label !== "trusted") ? ["external"] : [];',
    ...shares,
  },
  {
    name: "shared memory in turns: what a conflict shows is no read",
    file: "src/records/pools/pools.ts",
    from: "if (isRecorded(caller)) await recordReads(tx, caller, shownBy(error) ?? []);",
    to: "",
    ...shares,
  },
  {
    name: "shared memory in turns: one's own write is news",
    file: "src/records/pools/pins.ts",
    from: "return [read?.version, written?.version].filter",
    to: "return [read?.version ?? (written === undefined ? undefined : 0)].filter",
    ...shares,
  },
  {
    name: "agents know of everybody",
    file: "src/abilities/tools/coordination/agent-list-tool.ts",
    from: "agent.id === self.id || delegates.has(agent.id) || seen(agent)",
    to: "agent.id !== undefined || seen(agent)",
    ...agrees,
  },
];
