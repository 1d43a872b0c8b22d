import type { Token, Tokens } from "marked";
import type { Habits, Link, Run } from "./blocks.ts";

type Dress = Omit<Run, "text">;

/** The runs of a paragraph, in their order. */
export function readInline(tokens: readonly Token[], habits: Habits, dress: Dress = {}): Run[] {
  return tokens.flatMap((token, index) => {
    const read = readOne(token, habits, dress);
    if (!isInWord(token, tokens[index - 1], tokens[index + 1])) return read;
    const mark = { ...dress, text: token.type === "strong" ? "**" : "*" };
    return [mark, ...readInline((token as Tokens.Em).tokens, habits, dress), mark];
  });
}

/** 2*3*4: whoever writes so means the sign, and to lose it would be worse than to show it. */
function isInWord(token: Token, before: Token | undefined, after: Token | undefined): boolean {
  if ((token.type !== "em" && token.type !== "strong") || !token.raw.startsWith("*")) return false;
  return /[\p{L}\p{N}]$/u.test(before?.raw ?? "") && /^[\p{L}\p{N}]/u.test(after?.raw ?? "");
}

function readOne(token: Token, habits: Habits, dress: Dress): Run[] {
  const inside = (more: Dress): Run[] => readInline((token as Tokens.Generic).tokens ?? [], habits, { ...dress, ...more });
  switch (token.type) {
    case "strong":
      return inside({ bold: true });
    case "em":
      return inside({ italic: true });
    case "del":
      return inside({ strike: true });
    case "codespan":
      return [{ ...dress, text: (token as Tokens.Codespan).text, code: true }];
    case "br":
      return [{ ...dress, text: "\n" }];
    case "html":
      return [{ ...dress, text: /^<br\s*\/?>$/i.test(token.raw) ? "\n" : token.raw }];
    case "escape":
      return [{ ...dress, text: (token as Tokens.Escape).text }];
    case "link":
    case "image":
      return readLink(token as Tokens.Link | Tokens.Image, habits, dress);
    case "checkbox":
      return [];
    default: {
      const { tokens, text } = token as Tokens.Generic;
      return tokens ? inside({}) : [{ ...dress, text: decoded(typeof text === "string" ? text : token.raw) }];
    }
  }
}

function readLink(token: Tokens.Link | Tokens.Image, habits: Habits, dress: Dress): Run[] {
  const href = decoded(token.href);
  const named =
    token.type === "image"
      ? [{ ...dress, text: decoded(token.text).trim() || "image" }]
      : readInline(token.tokens, habits, dress).filter(({ text }) => text !== "");
  const words = named.length > 0 ? named : [{ ...dress, text: href }];
  const shown = words.map(({ text }) => text).join("");
  // A link inside a link is no link; and what a chat cannot open, or what would not fit, is better read than hidden.
  if (dress.link) return words;
  const isBare = href === shown || href === `mailto:${shown}` || href === `http://${shown}`;
  const isShort = habits.fitsBehind(href);
  if (isBare && !isShort) return [{ ...dress, text: shown, whole: true }];
  if (!isBare && !(isShort && OPENED.test(href))) return [...words, { ...dress, text: " " }, { ...dress, text: `(${href})`, whole: true }];
  const link: Link = { href: isBare ? shown : href };
  return words.map((run) => ({ ...run, link }));
}

const OPENED = /^(?:https?:\/\/[^\s/]|mailto:|tel:)/i;

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi, (whole, decimal, hex, name) => {
    if (name) return NAMED[name.toLowerCase()] ?? whole;
    const code = decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex, 16);
    return code >= 32 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : whole;
  });
}
