/** Telegram's own form of HTML: few tags, each closed in order. Throws what the Bot API says of anything else. */
export function readHtml(html: string): string {
  let text = "";
  const open: string[] = [];
  let at = 0;
  const fail = (problem: string): never => {
    throw new Error(`can't parse entities: ${problem}`);
  };
  const offset = (): number => Buffer.byteLength(html.slice(0, at));
  while (at < html.length) {
    const char = html[at] as string;
    if (char === "&") {
      const [whole, name] = /^&(#\d+|#x[0-9a-f]+|[a-z]+);/i.exec(html.slice(at)) ?? [];
      const decoded = name === undefined ? undefined : entity(name);
      text += decoded ?? "&";
      at += decoded === undefined ? 1 : (whole as string).length;
      continue;
    }
    if (char !== "<") {
      text += char;
      at++;
      continue;
    }
    const tag = /^<(\/?)([a-z][a-z0-9-]*|)((?:\s+[a-z-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>"']+))?)*)\s*>/i.exec(html.slice(at));
    const name = (tag?.[2] ?? /^<\/?([a-z0-9-]*)/i.exec(html.slice(at))?.[1] ?? "").toLowerCase();
    if (html[at + 1] === "/") {
      const expected = open.pop();
      if (expected === undefined) fail(`Unexpected end tag at byte offset ${offset()}`);
      if (!tag || name !== expected) fail(`Unmatched end tag at byte offset ${offset()}, expected "</${expected}>", found "</${name}>"`);
    } else {
      if (!TAGS.has(name)) fail(`Unsupported start tag "${name}" at byte offset ${offset()}`);
      if (!tag) fail(`Unclosed start tag at byte offset ${offset()}`);
      if (name === "span" && !/class\s*=\s*["']?tg-spoiler/.test(tag?.[3] ?? ""))
        fail(`Tag "span" must have class "tg-spoiler" at byte offset ${offset()}`);
      open.push(name);
    }
    at += (tag as RegExpExecArray)[0].length;
  }
  if (open.length > 0) fail(`Can't find end tag corresponding to start tag "${open.at(-1)}"`);
  return text;
}

const TAGS = new Set("b strong i em u ins s strike del span tg-spoiler a tg-emoji code pre blockquote".split(" "));

function entity(name: string): string | undefined {
  const named: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' };
  if (!name.startsWith("#")) return named[name];
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}
