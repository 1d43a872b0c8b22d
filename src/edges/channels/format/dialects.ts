import type { Habits } from "./blocks.ts";

export type Style = "bold" | "italic" | "strike";

/** Around what is dressed up: the letters beside it; empty: an end. */
export interface Beside {
  readonly before: string;
  readonly after: string;
}

/** How a platform writes, and what it counts. */
export interface Dialect extends Omit<Habits, "fitsBehind"> {
  length(text: string): number;
  words(text: string): string;
  style(style: Style, inside: string, beside: Beside): string;
  link(inside: string, href: string, shown: string): string;
  code(text: string, beside: Beside): string;
  codeBlock(text: string, language: string): string;
  quote(inside: string): string;
}

const units = (text: string): number => text.length;
const escapeHtml = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const eachLine = (text: string, change: (line: string) => string): string => text.split("\n").map(change).join("\n");
const quoteLines = (text: string): string => eachLine(text, (line) => `> ${line}`);
/** A fence that an agent's text must not close, or open. */
const apart = (text: string): string => text.replace(/`(?=`|$)/g, "`\u200b");
const besideWords = (inside: string, href: string, shown: string): string => (href === shown ? inside : `${inside} (${href})`);
const boldHeading = (): null => null;

/** Marks at the edge of words, on one line: elsewhere these platforms show the mark itself. */
function marked(mark: string, inside: string, { before, after }: Beside): string {
  const isLetter = /[\p{L}\p{N}]/u;
  if (isLetter.test(before) || isLetter.test(after) || inside.includes(mark)) return inside;
  return eachLine(inside, (line) => tight(line, (words) => mark + words + mark));
}

/** Blanks at the ends stay outside. */
function tight(text: string, change: (words: string) => string): string {
  const words = text.trim();
  const start = text.length - text.trimStart().length;
  return words === "" ? text : text.slice(0, start) + change(words) + text.slice(start + words.length);
}

const TAGS = { bold: "b", italic: "i", strike: "s" } as const;

/** Tags are not counted; what they hold is. */
const telegram: Dialect = {
  length: (html) => html.replace(/<[^>]*>/g, "").replace(/&(?:amp|lt|gt|quot);/g, "&").length,
  bullet: "• ",
  heading: boldHeading,
  words: escapeHtml,
  style: (style, inside) => `<${TAGS[style]}>${inside}</${TAGS[style]}>`,
  link: (inside, href, shown) => (href === shown ? inside : `<a href="${escapeHtml(href).replace(/"/g, "&quot;")}">${inside}</a>`),
  code: (text) => `<code>${escapeHtml(text)}</code>`,
  codeBlock: (text, language) =>
    language === "" ? `<pre>${escapeHtml(text)}</pre>` : `<pre><code class="language-${language}">${escapeHtml(text)}</code></pre>`,
  quote: (inside) => `<blockquote>${inside}</blockquote>`,
};

const DISCORD_MARKS = { bold: "**", italic: "*", strike: "~~" } as const;

function discordWords(text: string): string {
  return text
    .split(/(https?:\/\/\S+)/)
    .map((piece, index) =>
      index % 2 === 1
        ? apart(piece)
        : piece
            .replace(/[\\*~`|]/g, "\\$&")
            .replace(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, "\\_")
            .replace(/\]\(/g, "]\\(")
            .replace(/^(\s*)([#>-])/gm, "$1\\$2"),
    )
    .join("");
}

/** Counts letters as Unicode does. */
const discord: Dialect = {
  length: (text) => [...text].length,
  bullet: "- ",
  heading: (depth) => (depth <= 3 ? `${"#".repeat(depth)} ` : null),
  words: discordWords,
  style: (style, inside) => tight(inside, (words) => DISCORD_MARKS[style] + words + DISCORD_MARKS[style]),
  link: (inside, href, shown) =>
    href === shown
      ? apart(shown)
      : `[${inside.replace(/[[\]]/g, "\\$&")}](${href.replace(/[\s()<>]/g, (letter) => encodeURIComponent(letter).replace("(", "%28").replace(")", "%29"))})`,
  code: (text) => {
    const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map(units));
    // Three in a row would open a block.
    if (longest >= 2) return discordWords(text);
    return longest === 1 ? `\`\` ${text} \`\`` : `\`${text}\``;
  },
  codeBlock: (text, language) => `\`\`\`${language}\n${apart(text)}\n\`\`\``,
  quote: quoteLines,
};

const SLACK_MARKS = { bold: "*", italic: "_", strike: "~" } as const;
const slackWords = (text: string): string => apart(escapeHtml(text));

/** Whatever stands between < and > is ours: an agent's words call nobody. */
const slack: Dialect = {
  length: units,
  bullet: "• ",
  heading: boldHeading,
  words: slackWords,
  style: (style, inside, beside) => marked(SLACK_MARKS[style], inside, beside),
  link: (inside, href, shown) => {
    if (!/^(?:https?:\/\/|mailto:|tel:)/i.test(href)) return inside;
    const target = href.replace(/[\s<>|]/g, (letter) => encodeURIComponent(letter)).replace(/&/g, "&amp;");
    return href === shown ? `<${target}>` : `<${target}|${inside.replace(/\|/g, "¦").replaceAll("\n", " ")}>`;
  },
  code: (text, { before, after }) => (/`/.test(text + before + after) ? slackWords(text) : `\`${escapeHtml(text)}\``),
  codeBlock: (text) => `\`\`\`\n${slackWords(text)}\n\`\`\``,
  quote: quoteLines,
};

const whatsapp: Dialect = {
  length: units,
  bullet: "- ",
  heading: boldHeading,
  words: apart,
  style: (style, inside, beside) => marked(SLACK_MARKS[style], inside, beside),
  link: besideWords,
  code: (text, { before, after }) => (/`/.test(text + before + after) ? apart(text) : `\`\`\`${text}\`\`\``),
  codeBlock: (text) => `\`\`\`\n${apart(text)}\n\`\`\``,
  quote: quoteLines,
};

const plain: Dialect = {
  length: units,
  bullet: "- ",
  heading: boldHeading,
  words: (text) => text,
  style: (_style, inside) => inside,
  link: besideWords,
  code: (text) => text,
  codeBlock: (text) => text,
  quote: quoteLines,
};

export const DIALECTS = { telegram, discord, slack, whatsapp, plain } as const;
