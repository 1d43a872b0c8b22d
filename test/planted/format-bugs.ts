import type { PlantedBug } from "./bugs.ts";

const CHANNELS = "src/edges/channels";
const FORMAT = `${CHANNELS}/format`;
const parts = { tests: [`${FORMAT}/parts-for.test.ts`] };
const drafts = { tests: ["test/contract/drafts.test.ts"] };
const streaming = { tests: ["test/scenarios/channel-streaming.test.ts"] };

/** Bugs in how replies are written and cut, and in what people see while a turn runs. */
export const FORMAT_BUGS: readonly PlantedBug[] = [
  {
    name: "an agent on Slack can call everybody",
    file: `${FORMAT}/dialects.ts`,
    from: "const slackWords = (text: string): string => apart(escapeHtml(text));",
    to: 'const slackWords = (text: string): string => apart(text.replace(/&/g, "&amp;"));',
    ...parts,
  },
  {
    name: "a link ends its own tag on Telegram",
    file: `${FORMAT}/dialects.ts`,
    from: 'escapeHtml(href).replace(/"/g, "&quot;")',
    to: "href",
    ...parts,
  },
  {
    name: "the form without marks may be longer than a message",
    file: `${FORMAT}/parts-for.ts`,
    from: "return dialect === DIALECTS.plain ? inForm : Math.max(",
    to: "return dialect !== DIALECTS.slack ? inForm : Math.max(",
    ...parts,
  },
  {
    name: "a letter that is made of several is cut",
    file: `${FORMAT}/cut-block.ts`,
    from: "  if (start > 0) return start;\n",
    to: "",
    ...parts,
    filter: "one letter",
  },
  {
    name: "a link is cut in two",
    file: `${FORMAT}/cut-block.ts`,
    from: "(run.link || run.code || run.raw || run.whole)",
    to: "(run.code || run.raw || run.whole)",
    ...parts,
    filter: "never in a link",
  },
  {
    name: "an address that is written out is cut in two",
    file: `${FORMAT}/cut-block.ts`,
    from: "(run.link || run.code || run.raw || run.whole)",
    to: "(run.link || run.code || run.raw)",
    ...parts,
    filter: "an address",
  },
  {
    name: "every piece of an address that is longer than a message has all of it",
    file: `${FORMAT}/read-inline.ts`,
    from: "  if (isBare && !isShort) return [{ ...dress, text: shown, whole: true }];\n",
    to: "",
    ...parts,
    filter: "an address",
  },
  {
    name: "the beginning of a long heading waits for its end",
    file: `${FORMAT}/parts-for.ts`,
    from: "close(false);",
    to: "close(true);",
    ...parts,
    filter: "an address",
  },
  {
    name: "a heading is left behind",
    file: `${FORMAT}/parts-for.ts`,
    from: 'current.at(-1)?.kind === "heading"',
    to: 'current.at(-1)?.kind === "code"',
    ...parts,
    filter: "heading",
  },
  {
    name: "a turn commits while an edit of its draft is on its way",
    file: `${CHANNELS}/follow-turn.ts`,
    from: "await Promise.race([last, sleep(this.#parts.quietMs, undefined, { ref: false, signal: enough.signal }).catch(() => {})]);",
    to: "void last;",
    ...drafts,
    filter: "last word is not committed",
  },
  {
    name: "an edit that comes late has the last word",
    file: `${CHANNELS}/follow-turn.ts`,
    from: "if (this.#draft?.isBusy || this.#mayComeLate)",
    to: "if (this.#draft === undefined)",
    ...streaming,
    filter: "stopped leaves",
  },
  {
    name: "a draft is begun for a turn that is over",
    file: "src/records/sessions/runs.ts",
    from: 'return row?.status === "running";',
    to: "return row !== undefined;",
    ...drafts,
    filter: "comes after",
  },
  {
    name: "whoever goes on with a turn begins another draft",
    file: `${CHANNELS}/follow-turn-draft.ts`,
    from: "    if (!draft.isNew) return this.#edit(draft, part);\n",
    to: "",
    ...drafts,
    filter: "was recorded",
  },
  {
    name: "a draft that the platform knows already stays in the place of the reply",
    file: "src/drivers/dispatch/deliver-reply.ts",
    from: "[draft, isAgain] = [id, false];",
    to: "[draft, isAgain] = [null, false];",
    ...drafts,
    filter: "knows what it was sent",
  },
  {
    name: "a turn that is stopped leaves its draft as if it went on",
    file: "src/acts/end-run.ts",
    from: '  await closeDraftIn(store, tx, runId, "(stopped)", event);\n',
    to: "",
    ...drafts,
    filter: "is stopped",
  },
];
