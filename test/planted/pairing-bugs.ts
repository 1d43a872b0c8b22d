import type { PlantedBug } from "./bugs.ts";

const PAIRINGS = "src/records/channels/pairings.ts";
const ASK = "src/acts/ask-owners.ts";
const pairings = { tests: ["test/contract/pairings.test.ts"] };
const chats = { tests: ["test/scenarios/pairing.test.ts"] };
const commands = { tests: ["test/scenarios/channel-commands.test.ts"] };

export const PAIRING_BUGS: readonly PlantedBug[] = [
  {
    name: "a code lets in for ever",
    file: PAIRINGS,
    from: "and state = 'pending' and expires_at > now_ms() returning platform, account, peer",
    to: "and state = 'pending' returning platform, account, peer",
    ...pairings,
    filter: "an hour",
  },
  {
    name: "a code can be used again",
    file: PAIRINGS,
    from: "set state = 'paired', code = null,",
    to: "set state = 'pending', paired_by = null,",
    ...pairings,
  },
  {
    name: "codes are kept as they are told",
    file: PAIRINGS,
    from: 'return sha256(code.replaceAll(/[^a-z0-9]/gi, "").toUpperCase());',
    to: 'return code.replaceAll(/[^a-z0-9]/gi, "").toUpperCase();',
    ...pairings,
    filter: "stands nowhere",
  },
  {
    name: "any number of strangers hold codes",
    file: PAIRINGS,
    from: "if ((pending?.count ?? 0) >= MAX_PENDING) return null;",
    to: "if ((pending?.count ?? 0) < 0) return null;",
    ...pairings,
    filter: "at most 20",
  },
  {
    name: "strangers who come at once are not counted",
    file: PAIRINGS,
    from: "  await lockAccount(tx, name);\n",
    to: "",
    ...pairings,
    filter: "PostgreSQL",
  },
  {
    name: "whoever was let in may show others out",
    file: "src/drivers/intake/commands/pairing-commands.ts",
    from: 'help: "no longer let in somebody who was paired",\n  who: "owner",',
    to: 'help: "no longer let in somebody who was paired",\n  who: "anyone",',
    ...chats,
  },
  {
    name: "a group reads what an agent wants to do",
    file: ASK,
    from: 'if (place.address.chatType === "dm" && owners.includes(writerOf(place.address))) return ask(place.address);',
    to: "if (place.address.chatType) return ask(place.address);",
    ...chats,
    filter: "in a group",
  },
  {
    name: "what an agent writes ends the block in which its call is shown",
    file: "src/kernel/shown.ts",
    from: '.replaceAll("```", "\\\\u{60}\\\\u{60}\\\\u{60}")',
    to: "",
    ...chats,
    filter: "asked there",
  },
  {
    name: "owners are asked in chats about what somebody does at a terminal",
    file: ASK,
    from: "if (!isInChat && run.task === null) return;",
    to: "",
    ...chats,
    filter: "terminal",
  },
  {
    name: "what a dead node has said about an account counts",
    file: "src/acts/view-channels.ts",
    from: "state: row && held ? row.state : idle,",
    to: "state: row ? row.state : idle,",
    tests: ["test/contract/channel-views.test.ts"],
  },
  {
    name: "whoever may look may let in",
    file: "src/edges/api/channels-routes.ts",
    from: '      summary: "Let in whoever was told this code",\n      allow: OPERATORS,',
    to: '      summary: "Let in whoever was told this code",\n      allow: OVERSEERS,',
    ...commands,
    filter: "only operators",
  },
];
