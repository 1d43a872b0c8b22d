import type { PlantedBug } from "./bugs.ts";

const CHANNEL = "src/edges/channels/discord/discord-channel.ts";
const CONNECTION = "src/edges/channels/discord/gateway-connection.ts";
const SESSION = "src/edges/channels/discord/resumable-session.ts";
const gateway = { tests: ["test/scenarios/discord-gateway.test.ts"] };

export const DISCORD_BUGS: readonly PlantedBug[] = [
  {
    name: "an agent on Discord can call everybody",
    file: CHANNEL,
    from: "parse: [] as AllowedMentionsTypes[]",
    to: 'parse: ["everyone"] as AllowedMentionsTypes[]',
    ...gateway,
    filter: "edits",
  },
  {
    name: "Discord opens the addresses that an agent writes",
    file: CHANNEL,
    from: "flags: MessageFlags.SuppressEmbeds",
    to: "flags: MessageFlags.SuppressNotifications",
    ...gateway,
    filter: "edits",
  },
  {
    name: "a message to Discord whose answer was lost is shown twice",
    file: CHANNEL,
    from: "enforce_nonce: true",
    to: "enforce_nonce: false",
    ...gateway,
    filter: "says why",
  },
  {
    name: "a cut of Discord's connection gives its session up",
    file: CONNECTION,
    from: "else if (this.#isGreeted) this.#lostSession();",
    to: "else this.#lostSession();",
    ...gateway,
    filter: "front door",
  },
  {
    name: "heartbeats tell Discord that what was received is kept",
    file: SESSION,
    from: "sequence: kept.sequence, shardId",
    to: "sequence: this.#current.sequence + 1, shardId",
    ...gateway,
    filter: "whatever heartbeats",
  },
  {
    name: "a session of Discord is left so that nobody can go on with it",
    file: CONNECTION,
    from: "destroy({ code: CloseCodes.Resuming,",
    to: "destroy({ code: CloseCodes.Normal,",
    ...gateway,
    filter: "front door",
  },
  {
    name: "what came to Discord is counted before it is committed",
    file: CONNECTION,
    from: "    const messages: ChatMessage[] = [];\n",
    to: "    const messages: ChatMessage[] = [];\n    session.kept = { sequence: batch.at(-1)?.payload.s ?? 0, at: 0 };\n",
    ...gateway,
    filter: "whatever heartbeats",
  },
  {
    name: "Discord's client comes back after it was told to end",
    file: CONNECTION,
    from: "return this.#isOver || !this.#parts.inbound.stillOurs() ?",
    to: "return !this.#parts.inbound.stillOurs() ?",
    ...gateway,
    filter: "does not come back",
  },
  {
    name: "a file on Discord may be as large as it likes",
    file: "src/edges/channels/discord/attachments.ts",
    from: "if (seen > maxBytes)",
    to: "if (seen < 0)",
    ...gateway,
    filter: "files",
  },
  {
    name: "a thread on Discord is a channel of its own",
    file: "src/edges/channels/discord/places.ts",
    from: "return parent === null\n",
    to: "return parent !== undefined\n",
    tests: ["test/scenarios/discord.test.ts"],
    filter: "posts of a forum",
  },
  {
    name: "a long limit of Discord is slept through",
    file: "src/edges/channels/discord/discord-api.ts",
    from: "Math.max(timeToReset, retryAfter) > PATIENCE_MS",
    to: "Math.max(timeToReset, retryAfter) > PATIENCE_MS * 1_000",
    ...gateway,
    filter: "bucket",
  },
  {
    name: "a token that Discord has refused once is never tried again",
    file: "src/edges/channels/discord/discord-api.ts",
    from: "    this.rest.setToken(this.token);\n    return this.#api;",
    to: "    if (this.#api.channels.rest !== this.rest) this.rest.setToken(this.token);\n    return this.#api;",
    ...gateway,
    filter: "wrong token",
  },
  {
    name: "what Discord says that cannot be read keeps back everything after it",
    file: CONNECTION,
    from: "if (error instanceof ChannelTrouble) throw error;",
    to: "if (error instanceof Error) throw error;",
    ...gateway,
    filter: "cannot be read",
  },
];
