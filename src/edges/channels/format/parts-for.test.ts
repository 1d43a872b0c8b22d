import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Form, partsFor } from "./parts-for.ts";

const KINDS = ["telegram", "discord", "slack", "whatsapp", "plain"] as const;
const one = (kind: Form["kind"], text: string): string =>
  partsFor(text, { kind, maxLength: 2_000 })
    .map((part) => part.text)
    .join("\n=====\n");

const SAMPLE = `# Plan & more

Some **bold with *italic* inside**, ~~gone~~, \`a < b\` and [a link](https://example.org/?a=1&b=2).
<u>under</u> snake_case_name 2*3*4

1. one
2. two
   - nested **deep**
   - [x] done

> quoted
>
> twice

\`\`\`ts
const a = "<b>";
\`\`\`

| name | n |
|------|--:|
| ab   | 1 |
| c    | 22 |
`;

describe("in the form of each platform", () => {
  test("telegram gets its subset of HTML, everything else escaped", () => {
    expect(one("telegram", SAMPLE)).toBe(`<b>Plan &amp; more</b>

Some <b>bold with <i>italic</i> inside</b>, <s>gone</s>, <code>a &lt; b</code> and <a href="https://example.org/?a=1&amp;b=2">a link</a>.
&lt;u&gt;under&lt;/u&gt; snake_case_name 2*3*4

1. one
2. two
  • nested <b>deep</b>
  • ☑ done

<blockquote>quoted

twice</blockquote>

<pre><code class="language-ts">const a = "&lt;b&gt;";</code></pre>

<pre>name   n
----  --
ab     1
c     22</pre>`);
  });

  test("slack gets mrkdwn", () => {
    expect(one("slack", SAMPLE)).toBe(`*Plan &amp; more*

Some *bold with _italic_ inside*, ~gone~, \`a &lt; b\` and <https://example.org/?a=1&amp;b=2|a link>.
&lt;u&gt;under&lt;/u&gt; snake_case_name 2*3*4

1. one
2. two
  • nested *deep*
  • ☑ done

> quoted
> 
> twice

\`\`\`
const a = "&lt;b&gt;";
\`\`\`

\`\`\`
name   n
----  --
ab     1
c     22
\`\`\``);
  });

  test("discord gets its Markdown, and literal marks stay what they are", () => {
    const written = one("discord", SAMPLE);
    expect(written).toContain("# Plan & more\n");
    expect(written).toContain("**bold with *italic* inside**, ~~gone~~, `a < b` and [a link](https://example.org/?a=1&b=2).");
    expect(written).toContain("snake_case_name 2\\*3\\*4");
    expect(written).toContain("```ts\nconst a");
    expect(one("discord", "\\# no heading")).toBe("\\# no heading");
  });

  test("whatsapp gets its few marks, plain gets none", () => {
    expect(one("whatsapp", "**b** *i* ~~s~~ `c` [l](https://e.org)")).toBe("*b* _i_ ~s~ ```c``` l (https://e.org)");
    expect(one("plain", "**b** *i* ~~s~~ `c` [l](https://e.org)\n\n```js\nx\n```")).toBe("b i s c l (https://e.org)\n\nx");
  });

  test("no words of an agent call everybody on slack, or become a link that was not one", () => {
    for (const text of [
      "<!channel> <@U123>",
      "`<!here>`",
      "[x](<!channel>)",
      "```\n<!channel>\n```",
      "[<!channel>](https://e.org/|<!here>)",
    ])
      expect(one("slack", text)).not.toMatch(/<[!@#]/);
    expect(one("telegram", '[x](javascript:alert("1"))')).toBe('x (javascript:alert("1"))');
    expect(one("telegram", '[x](https://e.org/"><b>)')).not.toContain('"><b>');
  });

  test("marks within a word are left out where the platform would show them", () => {
    expect(one("slack", "**half**way")).toBe("halfway");
    expect(one("telegram", "**half**way")).toBe("<b>half</b>way");
    for (const kind of ["slack", "telegram"] as const) expect(one(kind, "2*3*4 = 2**3**3")).toBe("2*3*4 = 2**3**3");
  });

  test("a wide table is told row by row", () => {
    const wide = `| head | other |\n|---|---|\n| ${"x".repeat(80)} | **y** |`;
    expect(one("telegram", wide)).toBe(`• <b>head:</b> ${"x".repeat(80)}\n  <b>other:</b> <b>y</b>`);
  });
});

describe("where it is cut", () => {
  test("between paragraphs rather than in them, and a heading goes with what follows", () => {
    const [first, second, ...more] = partsFor(`${"a ".repeat(30)}\n\n## Next\n\n${"b ".repeat(30)}`, { kind: "plain", maxLength: 80 });
    expect(more).toEqual([]);
    expect(first?.text).toBe("a ".repeat(30).trim());
    expect(second?.text).toBe(`Next\n\n${"b ".repeat(30).trim()}`);
  });

  test("after a sentence rather than in it, after a word rather than in it", () => {
    const texts = partsFor("This is the first sentence of all. And this is another one, which is a bit longer.", {
      kind: "plain",
      maxLength: 64,
    }).map(({ text }) => text);
    expect(texts).toEqual(["This is the first sentence of all.", "And this is another one, which is a bit longer."]);
  });

  test("code stays whole where it fits; else at lines, with the fence and the language again", () => {
    const code = Array.from({ length: 12 }, (_, line) => `line(${line});`).join("\n");
    const whole = partsFor(`${"word ".repeat(20)}\n\n\`\`\`js\n${code}\n\`\`\``, { kind: "discord", maxLength: 150 });
    expect(whole.map(({ text }) => text.startsWith("```js\n"))).toEqual([false, true]);
    const split = partsFor(`\`\`\`js\n${code}\n\`\`\``, { kind: "discord", maxLength: 64 });
    expect(split.length).toBeGreaterThan(1);
    for (const { text } of split) expect(text).toMatch(/^```js\n(?:line\(\d+\);\n)+```$/);
    expect(split.map(({ plain }) => plain).join("\n")).toBe(code);
  });

  test("never in a link, and never in what is one letter to its reader", () => {
    const link = "[the documentation](https://example.org/a)";
    for (let before = 1; before < 100; before++)
      for (const { text } of partsFor(`${"x".repeat(before)} ${link} ${"word ".repeat(12)}`, { kind: "discord", maxLength: 100 }))
        expect(text.split("[").length).toBe(text.split(link).length);
    const family = "👨‍👩‍👧‍👦";
    for (const kind of KINDS)
      for (const { text } of partsFor(family.repeat(50), { kind, maxLength: 64 })) expect(text.replaceAll(family, "")).toBe("");
  });
});

test("an address stays whole where it fits into a message, behind its words or beside them", () => {
  const links = ["https://example.org/a?a=1&b=2", "https://example.org/A?a=1&b=2"];
  const heading = `1. **A**\n\n## [A](${links[0]}) [a](${links[1]}) \`aaaaAaAa AaAAAAa Aa aAAa AAAAaaAa\`\n\na`;
  for (const kind of KINDS) {
    const parts = partsFor(heading, { kind, maxLength: 64 });
    for (const link of links) expect(parts.filter(({ plain }) => plain.includes(link))).toHaveLength(1);
  }
  expect(partsFor(heading, { kind: "telegram", maxLength: 64 }).map(({ text }) => text)).toEqual([
    '1. <b>A</b>\n\n<a href="https://example.org/a?a=1&amp;b=2"><b>A</b></a>',
    '<a href="https://example.org/A?a=1&amp;b=2"><b>a</b></a>',
    "<b><code>aaaaAaAa AaAAAAa Aa aAAa AAAAaaAa</code></b>\n\na",
  ]);
  const long = `https://example.org/${"a".repeat(36)}`;
  for (const kind of KINDS)
    for (let before = 1; before < 64; before++)
      for (const text of [` ${long} a`, ` [a](${long}) a`, `\n\n${long} ${"word ".repeat(12)}`].map((rest) => "x".repeat(before) + rest))
        expect(partsFor(text, { kind, maxLength: 64 }).filter(({ plain }) => plain.includes(long))).toHaveLength(1);
});

test.each([
  `https://example.org/${"a".repeat(300)}`,
  `[words](https://example.org/${"a".repeat(300)})`,
  `[words](<https://example.org/${"\u3000(".repeat(20)}>)`,
  `[words](https://example.org/${"&".repeat(40)})`,
  `- [${"words ".repeat(30)}](https://example.org/${"a".repeat(24)})`,
])("an address that is too long for a message is cut, and no part is too long: %s", (text) => {
  for (const kind of KINDS) {
    const parts = partsFor(text, { kind, maxLength: 64 });
    for (const part of parts) {
      expect(counted(kind, part.text), part.text).toBeLessThanOrEqual(64);
      expect(counted(kind, part.plain), part.plain).toBeLessThanOrEqual(64);
    }
    expect(parts.length).toBeLessThan(30);
  }
});

/** Telegram's own rules: known tags, closed in order; nothing else has a sharp bracket or a bare ampersand. */
function isWellFormed(html: string): boolean {
  const open: string[] = [];
  for (const { 0: piece } of html.matchAll(/<[^>]*>|[^<]+|</g)) {
    if (!piece.startsWith("<")) {
      if (piece.includes(">") || /&(?!(?:amp|lt|gt|quot);)/.test(piece)) return false;
      continue;
    }
    const tag = /^<(\/?)(b|i|s|code|pre|a|blockquote)((?: (?:href|class)="[^"<>]*")?)>$/.exec(piece);
    if (!tag) return false;
    if (tag[1] === "") open.push(tag[2] as string);
    else if (open.pop() !== tag[2]) return false;
  }
  return open.length === 0;
}

function counted(kind: Form["kind"], text: string): number {
  if (kind === "discord") return [...text].length;
  return kind === "telegram" ? text.replace(/<[^>]*>/g, "").replace(/&\w+;/g, "&").length : text.length;
}

const word = fc.stringMatching(/^[a-zA-Z]{1,12}$/);
const words = fc.array(word, { minLength: 1, maxLength: 30 }).map((all) => all.join(" "));
const inline = fc
  .array(
    fc.oneof(
      words,
      words.map((text) => `**${text}**`),
      words.map((text) => `*${text}*`),
      words.map((text) => `***${text}***`),
      words.map((text) => `~~${text}~~`),
      words.map((text) => `\`${text}\``),
      fc.tuple(words, word).map(([text, end]) => `[${text}](https://example.org/${end}?a=1&b=2)`),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((all) => all.join(" "));
const block = fc.oneof(
  inline,
  inline.map((text) => `## ${text}`),
  inline.map((text) => `> ${text}`),
  fc.array(inline, { minLength: 1, maxLength: 6 }).map((items) => items.map((item) => `- ${item}`).join("\n")),
  fc
    .array(inline, { minLength: 1, maxLength: 6 })
    .map((items) => items.map((item, index) => `${"   ".repeat(index % 3)}1. ${item}`).join("\n")),
  fc.array(words, { minLength: 1, maxLength: 20 }).map((lines) => `\`\`\`ts\n${lines.join("\n")}\n\`\`\``),
  fc
    .array(fc.tuple(word, words), { minLength: 1, maxLength: 6 })
    .map((rows) => `| a | b |\n|---|---|\n${rows.map((row) => `| ${row.join(" | ")} |`).join("\n")}`),
);
const markdown = fc.array(block, { minLength: 1, maxLength: 8 }).map((all) => all.join("\n\n"));
const noise = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc
    .array(
      fc.constantFrom(
        "*",
        "_",
        "`",
        "```",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "[",
        "](",
        ")",
        "<",
        ">",
        "&",
        "|",
        "|-|",
        "#",
        " ",
        "a",
        "é",
        "👨‍👩‍👧",
        "\ud800",
        "http://a.b/c",
        "~~",
        "\\",
        "\t",
        "!",
        "<!channel>",
        "&amp;",
      ),
      { maxLength: 150 },
    )
    .map((all) => all.join("")),
);
/** The same on every run, so that a failure is never a matter of luck. */
const SEED = 20_261_116;
const form = fc.record({ kind: fc.constantFrom(...KINDS), maxLength: fc.integer({ min: 64, max: 400 }) });
const lettersOf = (text: string): string => text.replace(/[^a-zA-Z]/g, "");

describe("whatever is written", () => {
  test("no word is lost, and all of them stay in their order", () => {
    fc.assert(
      fc.property(markdown, form, (text, wanted) => {
        const source = text.replace(/^```ts$/gm, "").replace(/\]\(https:\/\/example\.org\/\w+\?a=1&b=2\)/g, "]");
        const shown = partsFor(text, wanted)
          .map(({ plain }) => plain)
          .join("\n")
          .replace(/\s?\(https:\/\/example\.org\/\w+\?a=1&b=2\)/g, "");
        const isTable = /^\| a \| b \|$/m.test(text);
        // A table that is told row by row says its heads in each.
        if (!isTable) expect(lettersOf(shown)).toBe(lettersOf(source));
        else for (const found of source.match(/[a-zA-Z]+/g) ?? []) expect(lettersOf(shown)).toContain(found);
      }),
      { seed: SEED, numRuns: 150 },
    );
  });

  test("every part is within the limit, says something, and is whole by itself", () => {
    fc.assert(
      fc.property(fc.oneof(markdown, noise), form, (text, wanted) => {
        const parts = partsFor(text, wanted);
        expect(partsFor(text, wanted)).toEqual(parts);
        for (const part of parts) {
          expect(counted(wanted.kind, part.text)).toBeLessThanOrEqual(wanted.maxLength);
          expect(counted("plain", part.plain)).toBeLessThanOrEqual(wanted.kind === "discord" ? 2 * wanted.maxLength : wanted.maxLength);
          for (const form of [part.text, part.plain]) {
            expect(form.trim()).not.toBe("");
            expect(form.isWellFormed()).toBe(true);
          }
          if (wanted.kind === "telegram") expect(isWellFormed(part.text), part.text).toBe(true);
          if (wanted.kind === "slack") expect(part.text).not.toMatch(/<(?!https?:|mailto:|tel:)/);
          if (wanted.kind !== "plain" && wanted.kind !== "telegram")
            expect((part.text.match(/(?<!\\)```/g)?.length ?? 0) % 2, part.text).toBe(0);
        }
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  const HOSTILE: Readonly<Record<string, string>> = {
    stars: "*".repeat(100_000),
    "stars in words": "a*".repeat(20_000),
    underscores: "_a".repeat(20_000),
    "many paragraphs of marks": `${"_a".repeat(499)}\n\n`.repeat(40),
    "deep quotes": `${">".repeat(1_000)} a`,
    "deep lists on one line": `${"- ".repeat(1_000)}a`,
    "deep lists": Array.from({ length: 1_000 }, (_, depth) => `${"  ".repeat(depth)}- a`).join("\n"),
    "deep but short": Array.from({ length: 250 }, (_, depth) => `${" ".repeat(depth)}- a`).join("\n"),
    "a word": "a".repeat(1_000_000),
    letters: "👨‍👩‍👧‍👦".repeat(30_000),
    "one letter": `a${"\u0301".repeat(50_000)}`,
    "a table of many cells": `${"|a".repeat(2_000)}|\n${"|-".repeat(2_000)}|\n${"|\n".repeat(10_000)}`,
    brackets: "[".repeat(39_000),
    ticks: Array.from({ length: 270 }, (_, length) => `${"`".repeat(length)}a`).join(""),
    blanks: " ".repeat(500_000),
    "blank lines": "a\n\n".repeat(100_000),
    "code of one line": `\`\`\`\n${"x".repeat(39_000)}\n\`\`\``,
  };
  test.each(Object.entries(HOSTILE))("hostile: %s", (_name, text) => {
    for (const kind of KINDS) {
      const before = process.threadCpuUsage();
      const parts = partsFor(text, { kind, maxLength: 4_000 });
      const { user, system } = process.threadCpuUsage(before);
      for (const part of parts) expect(counted(kind, part.text)).toBeLessThanOrEqual(4_000);
      expect((user + system) / 1_000).toBeLessThan(3_000);
    }
  });
});
