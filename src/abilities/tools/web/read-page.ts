import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";
import TurndownService from "turndown";

/** A page as somebody reads it. */
export interface ReadablePage {
  readonly title: string | null;
  readonly date: string | null;
  readonly text: string;
}

/** The reader looks at every element several times, and deep in a page at all that is around it: beyond this it would take its whole time. */
const MAX_TAGS = 150_000;
const MAX_DEPTH = 1_000;
const DATES = [
  'meta[property="article:published_time"]',
  'meta[name="date"]',
  'meta[itemprop="datePublished"]',
  'meta[property="article:modified_time"]',
];
const NOT_WORDS = "script, style, noscript, template, iframe, svg, canvas";

/** The words of a page, as Markdown where it can be read so, else as they are. Takes long for large pages: not for a busy thread. */
export function readPage(html: string, url: string): ReadablePage {
  const plain = { title: null, date: null, text: strippedOf(html) };
  if (isTooMuch(html)) return plain;
  try {
    const { document } = parseHTML(wholePage(html));
    for (const element of document.querySelectorAll(NOT_WORDS)) element.remove();
    const title = document.querySelector("title")?.textContent;
    const date = DATES.map((selector) => document.querySelector(selector)?.getAttribute("content")).find((found) => found);
    const article = new Readability<unknown>(document.cloneNode(true), { serializer: (node) => node, charThreshold: 200 }).parse();
    const text = markdownOf(article?.content ?? document.body, url).trim();
    return { title: line(article?.title || title), date: line(article?.publishedTime ?? date), text: text === "" ? plain.text : text };
  } catch {
    // So deeply nested that the stack does not suffice, or broken in a way that nobody has thought of: its words are still words.
    return plain;
  }
}

/** Counted without building anything, in one pass. */
function isTooMuch(html: string): boolean {
  let tags = 0;
  let depth = 0;
  for (const [, closing, name] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)/gi)) {
    if (++tags > MAX_TAGS) return true;
    if (CLOSED_BY_THEMSELVES.has((name as string).toLowerCase())) continue;
    depth = closing ? Math.max(0, depth - 1) : depth + 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

const CLOSED_BY_THEMSELVES = new Set(
  "area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot option".split(" "),
);

/** The parser takes the first element for the whole page where nobody says which it is. */
function wholePage(html: string): string {
  if (/<html[\s>]/i.test(html) && /<body[\s>]/i.test(html)) return html;
  return `<!doctype html><html><head></head><body>${html.replace(/<!doctype[^>]*>|<\/?(?:html|body)\b[^>]*>/gi, "")}</body></html>`;
}

function markdownOf(node: unknown, url: string): string {
  const turndown = new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-", emDelimiter: "*" });
  turndown.addRule("links", {
    filter: "a",
    replacement: (content, element) => {
      const target = absolute(attributeOf(element, "href"), url);
      const words = content.trim();
      return words === "" ? "" : target === null ? words : `[${words}](${target})`;
    },
  });
  turndown.addRule("cells", { filter: ["td", "th"], replacement: (content) => ` ${content.trim().replace(/\s+/g, " ")} |` });
  turndown.addRule("rows", { filter: "tr", replacement: (content) => (content.trim() === "" ? "" : `|${content}\n`) });
  // Pictures cannot be seen here; what stands for them can be read.
  turndown.addRule("pictures", { filter: "img", replacement: (_content, element) => attributeOf(element, "alt")?.trim() ?? "" });
  return turndown.turndown(node as never).replace(/\n{3,}/g, "\n\n");
}

function attributeOf(element: unknown, name: string): string | null {
  return (element as { getAttribute(name: string): string | null }).getAttribute(name);
}

function absolute(href: string | null, base: string): string | null {
  if (href === null || href.startsWith("#")) return null;
  try {
    const url = new URL(href, base);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

/** In one pass, whatever stands there: an expression would look to the end of the page for each "<" that nothing closes. */
function strippedOf(html: string): string {
  const small = html.toLowerCase();
  const words: string[] = [];
  for (let at = 0; at < html.length; ) {
    const open = small.indexOf("<", at);
    words.push(html.slice(at, open < 0 ? undefined : open));
    if (open < 0) break;
    const silent = ["script", "style"].find((name) => small.startsWith(name, open + 1));
    const from = silent === undefined ? open : small.indexOf(`</${silent}`, open);
    const close = from < 0 ? -1 : small.indexOf(">", from);
    if (close < 0) break;
    at = close + 1;
  }
  return words.join(" ").replace(/\s+/g, " ").trim();
}

function line(text: string | null | undefined): string | null {
  const words = text?.replace(/\s+/g, " ").trim().slice(0, 300);
  return words ? words : null;
}
