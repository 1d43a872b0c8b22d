/** Some words in one dress. `raw`: marks of our own, such as a bullet, which mean what they are. */
export interface Run {
  readonly text: string;
  readonly bold?: boolean;
  readonly italic?: boolean;
  readonly strike?: boolean;
  readonly code?: boolean;
  readonly raw?: boolean;
  /** An address as it is read: in two pieces it leads nowhere. */
  readonly whole?: boolean;
  /** The same object in all runs of one link. */
  readonly link?: Link;
}

export interface Link {
  readonly href: string;
}

/**
 * A message is a row of blocks without anything inside each other: chats show no more than that. What was nested is told by its indent.
 * `gap`: how many ends of line stand before it, unless it is the first.
 */
export interface Block {
  readonly kind: "text" | "heading" | "code";
  readonly runs: readonly Run[];
  readonly gap: 1 | 2;
  readonly isQuote: boolean;
  /** Of code; empty: nobody said. */
  readonly language: string;
}

const INVISIBLE = /^[\s\p{Cc}\p{Cf}\u3164\u2800]*$/u;

/** Whether somebody would see something: platforms refuse a message of blanks. */
export function isVisible(text: string): boolean {
  return !INVISIBLE.test(text);
}

export function textOf({ runs }: Pick<Block, "runs">): string {
  return runs.map(({ text }) => text).join("");
}

/** From one place in the words to another. */
export function slice(runs: readonly Run[], from: number, to: number): Run[] {
  const taken: Run[] = [];
  let at = 0;
  for (const run of runs) {
    const end = at + run.text.length;
    if (end > from && at < to) {
      const text = run.text.slice(Math.max(0, from - at), to - at);
      taken.push(text === run.text ? run : { ...run, text });
    }
    at = end;
    if (at >= to) break;
  }
  return taken;
}

/** How a platform writes what is not a matter of letters. `heading`: the marks before it; null: it is bold. */
export interface Habits {
  readonly bullet: string;
  heading(depth: number): string | null;
  /** Every piece of a link has its address: one that leaves no room for the words is written out beside them. */
  fitsBehind(href: string): boolean;
}
