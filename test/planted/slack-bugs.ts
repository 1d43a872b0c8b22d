import type { PlantedBug } from "./bugs.ts";

const FOLDER = "src/edges/channels/slack";
const port = { tests: ["test/scenarios/slack-port.test.ts"] };
const whole = { tests: ["test/scenarios/slack.test.ts"] };

export const SLACK_BUGS: readonly PlantedBug[] = [
  {
    name: "slack: an envelope is acknowledged before it was committed",
    file: `${FOLDER}/slack-socket.ts`,
    from: "      const messages = await Promise.all(envelopes.map(",
    to: "      for (const { ack } of envelopes) await ack();\n      const messages = await Promise.all(envelopes.map(",
    ...port,
  },
  {
    name: "slack: a connection is left before there is another",
    file: `${FOLDER}/slack-connection.ts`,
    from: 'const reason = typeof data === "string" ? reasonToLeave(data) : undefined;',
    to: 'const reason = typeof data === "string" ? undefined : reasonToLeave("");',
    ...port,
  },
  {
    name: "slack: the old connection is closed while something of it is not committed",
    file: `${FOLDER}/slack-socket.ts`,
    from: "await Promise.race([desk.idle(), sleep(FAREWELL_MS, undefined, { ref: false })]);",
    to: "await sleep(0 * FAREWELL_MS);",
    ...port,
  },
  {
    name: "slack: a connection that ends at once is followed by another at once",
    file: `${FOLDER}/slack-socket.ts`,
    from: "if (livedMs < SHORT_LIVED_MS)",
    to: "if (livedMs < 0 * SHORT_LIVED_MS)",
    ...port,
  },
  {
    name: "slack: a message that calls us is two messages",
    file: `${FOLDER}/slack-event.ts`,
    from: "id: `${channel}:${ts}`",
    to: "id: `${said.type}:${channel}:${ts}`",
    ...whole,
  },
  {
    name: "slack: all that is said in a channel is one conversation",
    file: `${FOLDER}/slack-event.ts`,
    from: "topic: thread ?? (isPrivate ? null : ts)",
    to: "topic: thread ?? null",
    ...whole,
  },
  {
    name: "slack: a post that was signed long ago is taken",
    file: `${FOLDER}/slack-hook.ts`,
    from: "if (!isNow || !isSame(given, wanted))",
    to: "if (at === String(isNow) || !isSame(given, wanted))",
    ...whole,
  },
  {
    name: "slack: a post that somebody else has signed is taken",
    file: `${FOLDER}/slack-hook.ts`,
    from: "if (!isNow || !isSame(given, wanted))",
    to: "if (!isNow || isSame(wanted, given) === null)",
    ...whole,
  },
  {
    name: "slack: our token is shown to whoever a file is said to lie with",
    file: `${FOLDER}/slack-api.ts`,
    from: "if (!isOwn) throw",
    to: "if (!given) throw",
    ...port,
  },
  {
    name: "slack: an agent can call everybody",
    file: `${FOLDER}/slack-text.ts`,
    from: 'return text.replaceAll("<!", "&lt;!");',
    to: "return text;",
    tests: [`${FOLDER}/slack-text.test.ts`],
  },
  {
    name: "slack: a revoked token is not noticed while nothing is said",
    file: `${FOLDER}/slack-channel.ts`,
    from: 'if (trouble.kind === "refused") throw trouble;',
    to: 'if (trouble.kind === "refused") told?.disconnected(trouble.message);',
    ...port,
  },
  {
    name: "slack: a crowd of names is asked about one by one",
    file: `${FOLDER}/slack-event.ts`,
    from: ".slice(0, MAX_ASKED);",
    to: ";",
    ...port,
    filter: "no envelope",
  },
];
