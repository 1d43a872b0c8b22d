import type { Part } from "../../../kernel/channel.ts";
import { type Block, type Habits, isVisible, textOf } from "./blocks.ts";
import { cutBlock } from "./cut-block.ts";
import { DIALECTS, type Dialect } from "./dialects.ts";
import { readBlocks } from "./read-blocks.ts";
import { writeBlock } from "./write-block.ts";

/** How a platform wants its text, and how long a message may be in what it counts. */
export interface Form {
  readonly kind: "telegram" | "discord" | "slack" | "whatsapp" | "plain";
  /** 64 at least. */
  readonly maxLength: number;
}

/** A long block begins where another has ended, if there is so much room left. */
const WORTH_BEGINNING = 1 / 4;
/** Of a message, what an address behind words may take up before it is written out. */
const HREF_SHARE = 3 / 4;

const A_WORD: Omit<Block, "runs"> = { kind: "text", gap: 1, isQuote: false, language: "" };

/** What an agent writes (Markdown), in the platform's form, cut into messages where it makes sense. */
export function partsFor(text: string, { kind, maxLength }: Form): readonly Part[] {
  const dialect = DIALECTS[kind];
  const habits: Habits = {
    bullet: dialect.bullet,
    heading: dialect.heading,
    fitsBehind: (href) => costIn(dialect, { ...A_WORD, runs: [{ text: "a", link: { href } }] }) <= maxLength * HREF_SHARE,
  };
  const messages = pack(readBlocks(text, habits), maxLength, (block) => costIn(dialect, block));
  return messages.map((blocks) => ({ text: writeMessage(dialect, blocks), plain: writeMessage(DIALECTS.plain, blocks) }));
}

/** Both forms must fit: the plain one goes where the other is refused. */
function costIn(dialect: Dialect, block: Block): number {
  const alone = [block];
  const inForm = dialect.length(writeMessage(dialect, alone));
  return dialect === DIALECTS.plain ? inForm : Math.max(inForm, dialect.length(writeMessage(DIALECTS.plain, alone)));
}

function pack(blocks: readonly Block[], room: number, costOf: (block: Block) => number): Block[][] {
  const messages: Block[][] = [];
  let current: Block[] = [];
  let used = 0;
  const add = (block: Block, cost: number): void => {
    used += cost + (current.length > 0 ? gapOf(block) : 0);
    current.push(block);
  };
  const close = (isBetweenBlocks: boolean): void => {
    // A heading belongs to what follows; the beginning of a long one does not follow itself.
    const last = isBetweenBlocks && current.length > 1 && current.at(-1)?.kind === "heading" ? current.pop() : undefined;
    messages.push(current);
    current = [];
    used = 0;
    if (last) add(last, costOf(last));
  };
  for (const block of blocks) {
    for (let rest: Block | null = block; rest !== null; ) {
      // What is far too long is not written out just to count it.
      const cost = lengthOf(rest) > 2 * room ? Number.POSITIVE_INFINITY : costOf(rest);
      const left = room - used - (current.length > 0 ? gapOf(rest) : 0);
      if (cost <= left) {
        add(rest, cost);
        break;
      }
      if (current.length > 0 && (cost <= room || left < room * WORTH_BEGINNING)) {
        close(true);
        continue;
      }
      const { head, tail } = cutBlock(rest, left, current.length === 0, costOf);
      if (head && isVisible(textOf(head))) {
        add(head, costOf(head));
        close(false);
      } else if (tail === rest) close(true);
      rest = tail && isVisible(textOf(tail)) ? tail : null;
    }
  }
  if (current.length > 0) messages.push(current);
  return messages;
}

/** In a quote, empty lines are marked as well. */
function gapOf({ gap, isQuote }: Block): number {
  return isQuote ? gap * 3 : gap;
}

function lengthOf({ runs }: Block): number {
  return runs.reduce((sum, { text }) => sum + text.length, 0);
}

function writeMessage(dialect: Dialect, blocks: readonly Block[]): string {
  let written = "";
  for (let at = 0; at < blocks.length; ) {
    let end = at + 1;
    if (blocks[at]?.isQuote) while (blocks[end]?.isQuote) end++;
    const inside = blocks
      .slice(at, end)
      .map((block, index) => (index > 0 ? "\n".repeat(block.gap) : "") + writeBlock(dialect, block))
      .join("");
    written += (at > 0 ? "\n".repeat(blocks[at]?.gap ?? 1) : "") + (blocks[at]?.isQuote ? dialect.quote(inside) : inside);
    at = end;
  }
  return written;
}
