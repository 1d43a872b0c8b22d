import type { PlantedBug } from "./bugs.ts";

const COMMANDS = "src/drivers/intake/commands";
const sessions = { tests: ["test/contract/sessions.test.ts"] };
const commands = { tests: ["test/contract/commands.test.ts"] };
const stop = { tests: ["test/contract/stop.test.ts"] };
const approvals = { tests: ["test/contract/approvals.test.ts"] };

/** Bugs in conversations, commands, stopping and approvals. */
export const SESSION_BUGS: readonly PlantedBug[] = [
  {
    name: "a turn sees what was said in other epochs",
    file: "src/records/sessions/transcript.ts",
    from: "(epoch, position) > (cast(${epoch} as bigint)",
    to: "(epoch, position) > (0",
    ...sessions,
  },
  {
    name: "positions in a transcript begin anew with each epoch",
    file: "src/records/sessions/transcript.ts",
    from: "order by position desc limit 1`",
    to: "and epoch = ${epoch} order by position desc limit 1`",
    tests: ["test/contract/sessions-mixed.test.ts"],
  },
  {
    name: "a turn reads a hundred messages, however long",
    file: "src/records/sessions/transcript.ts",
    from: "(place = 1 or total <= ${READ_BYTES})",
    to: "(place = 1 or total > 0)",
    tests: ["test/contract/long-conversations.test.ts"],
  },
  {
    name: "of a short conversation with a long message only the short ones are told",
    file: "src/records/sessions/transcript.ts",
    from: "rows.length <= most && rows.every(isWhole) ? rows.map(saidOf)",
    to: "rows.length <= most ? rows.filter(isWhole).map(saidOf)",
    tests: ["test/contract/long-conversations.test.ts"],
  },
  {
    name: "of a long conversation only the newest part is told",
    file: "src/records/sessions/transcript.ts",
    from: "rows.length <= most && rows.every(isWhole)",
    to: "rows.every(isWhole)",
    tests: ["test/contract/long-conversations.test.ts"],
  },
  {
    name: "what a failed turn was about to do is not told",
    file: "src/records/journal/steps.ts",
    from: "(reply_calls is not null or status <> 'completed')",
    to: "reply_calls is not null",
    tests: ["test/contract/told-turns.test.ts"],
  },
  {
    name: "whoever has a conversation handed over from a shared session stops everybody's turns in it",
    file: `${COMMANDS}/session-commands.ts`,
    from: 'reaches(ruled.standing, "own") ? [ruled.sessionKey] : []',
    to: 'reaches(ruled.standing, "anyone") ? [ruled.sessionKey] : []',
    ...stop,
  },
  {
    name: "search finds everybody's words and leaves out other agents' only where they are asked for",
    file: "src/records/sessions/sessions.ts",
    from: "scopes: agentScopes(wanted), text: q",
    to: 'scopes: agentScopes(wanted.length > 0 ? "all" : wanted), text: q',
    ...sessions,
  },
  {
    name: "a handover counts also to an agent that is gone",
    file: "src/acts/place-message.ts",
    from: "if (refusal !== null) {",
    to: 'if (refusal === "never") {',
    ...sessions,
  },
  {
    name: "a command that comes again takes effect again",
    file: "src/acts/answer-command.ts",
    from: "  if (owner !== runId) return { admission: await firstAdmission(tx, owner), stopped: [] };\n",
    to: "  if (owner !== runId) await message.effect(tx, await placeMessage(tx, message, message.targets ?? null));\n  if (owner !== runId) return { admission: await firstAdmission(tx, owner), stopped: [] };\n",
    ...commands,
  },
  {
    name: "a channel that calls itself a terminal is the operator's",
    file: `${COMMANDS}/standing.ts`,
    from: 'if (poster?.kind === "operator" && platform === OWN_TERMINAL)',
    to: "if (platform === OWN_TERMINAL)",
    ...commands,
  },
  {
    name: "a direct message is one's own also where all of them are one conversation",
    file: `${COMMANDS}/standing.ts`,
    from: 'chatType === "dm" ? scopes.dmScope !== "main"',
    to: 'chatType === "dm" ? true',
    ...commands,
  },
  {
    name: "a stop ends the run and leaves its work",
    file: "src/acts/stop-runs.ts",
    from: "const removed = await store.queue.cancelAll(\n    tx,\n    items.map(({ id }) => id),\n  );",
    to: "const removed = new Set(items.map(({ id }) => id));",
    ...stop,
  },
  {
    name: "a stop ends runs whose work was settled meanwhile",
    file: "src/acts/stop-runs.ts",
    from: "if (!removed.has(id)) continue;",
    to: "",
    ...stop,
  },
  {
    name: "an approval is good for any call",
    file: "src/records/access/approvals.ts",
    from: "if (row.hash !== hash) {",
    to: "if (hash === '') {",
    ...approvals,
  },
  {
    name: "an approval is good for many calls",
    file: "src/records/access/approvals.ts",
    from: 'if (row.used_at !== null) return "already used";',
    to: "",
    ...approvals,
  },
  {
    name: "anybody's approval counts",
    file: "src/records/access/approvals.ts",
    from: "if (!by.mayAnswer)",
    to: 'if (by.name === "")',
    ...approvals,
  },
  {
    name: "hidden characters stay hidden from whoever has to approve",
    file: "src/kernel/shown.ts",
    from: ".replace(HIDDEN, escaped)",
    to: ".replace(/[\\p{Cc}]/gu, escaped)",
    ...approvals,
  },
];
