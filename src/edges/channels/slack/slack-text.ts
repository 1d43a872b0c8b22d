/** A word of Slack's own in a message: `<@U1|bob>`, `<#C1|general>`, `<!here>`, `<https://a.b|words>`. */
const WORD = /<([^<>\n]+)>/g;
/** What calls us, at the beginning or the end of a message. */
const CALLS = (id: string): { readonly first: RegExp; readonly last: RegExp } => ({
  first: new RegExp(`^(?:\\s*<@${id}(?:\\|[^<>]*)?>[,:]?)+\\s*`),
  last: new RegExp(`(?:\\s*<@${id}(?:\\|[^<>]*)?>)+\\s*$`),
});

/** The ids of everybody who is called by name. */
export function mentionedIn(text: string): string[] {
  return [...new Set([...text.matchAll(/<@([A-Z0-9]+)(?:\|[^<>]*)?>/g)].map(([, id]) => id as string))];
}

/** A message as people read it. Words that only call us are left out; where nothing else was said, our name is what was said. */
export function readable(
  text: string,
  self: { readonly id: string; readonly name: string },
  nameOf: (id: string) => string | null,
): string {
  const { first, last } = CALLS(self.id);
  const rest = text.replace(first, "").replace(last, "").trim();
  const said = rest === "" && mentionedIn(text).includes(self.id) ? `<@${self.id}>` : rest;
  let result = "";
  let at = 0;
  for (const match of said.matchAll(WORD)) {
    result += unescaped(said.slice(at, match.index));
    const word = match[1] as string;
    result += unescaped(wordOf(word, (id) => (id === self.id ? self.name : nameOf(id))));
    at = match.index + match[0].length;
  }
  return result + unescaped(said.slice(at));
}

function wordOf(word: string, nameOf: (id: string) => string | null): string {
  const bar = word.indexOf("|");
  const target = bar < 0 ? word : word.slice(0, bar);
  const label = bar < 0 ? "" : word.slice(bar + 1);
  if (target.startsWith("@")) return `@${nameOf(target.slice(1)) ?? (label || target.slice(1))}`;
  if (target.startsWith("#")) return `#${label || target.slice(1)}`;
  if (target.startsWith("!")) return label || `@${target.slice(1)}`;
  const address = target.replace(/^(?:mailto|tel):/, "");
  return label === "" || label === address || label === target ? address : `${label} (${address})`;
}

/** Slack escapes these three and no others; the ampersand comes last, or `&amp;lt;` would become something that nobody wrote. */
function unescaped(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Words that call everybody (`<!channel>`, `<!here>`, a group of people) are shown as they stand, and call nobody. */
export function callsNobody(text: string): string {
  return text.replaceAll("<!", "&lt;!");
}
