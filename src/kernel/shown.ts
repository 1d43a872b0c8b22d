/**
 * Whatever a reader would not see as it is: control and format characters, those that turn the direction of writing, that have no
 * width or no ink, blanks that are not the usual one, and code points that mean nothing (yet).
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2800]|(?! )\p{Zs}/gu;

/**
 * The text as somebody may judge it who has to decide about it: nothing hidden, and on one line. A backslash is doubled, so that an
 * escape in the result always stands for the character and never for the six characters themselves.
 */
export function shown(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(HIDDEN, escaped);
}

/** On a chat platform, as it is: no part of it ends the block, and nothing in it is taken for a link, a name or emphasis. */
export function inFence(line: string): string {
  return `\`\`\`\n${line.replaceAll("```", "\\u{60}\\u{60}\\u{60}")}\n\`\`\``;
}

function escaped(character: string): string {
  if (character === "\n") return "\\n";
  if (character === "\t") return "\\t";
  return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
}
