import type { Redact } from "../kernel/redact.ts";

const TOO_LONG = 500;
const NAMED_SECRET = /((?:token|key|secret|password)["']?\s*[:=]\s*)(?!\$\{|\[+secret)["']?[^\s,}"']+["']?/gi;
const PASSWORD_IN_ADDRESS = /(:\/\/[^\s:/@]*:)[^\s@]+@/g;
/** What may stand after such a key is anybody's guess in a file that is not YAML. */
const MAY_HOLD_SECRETS = /^(.*?["']?[\w-]*(?:token|key|secret|pass|pwd|auth|cred|cookie|env|headers)[\w-]*["']?\s*[:=]\s*).*$/is;
const KEY_OF_A_LINE = /^(\s*)(?:- )?["']?([\w-]+)["']?\s*:/;

export interface ConfigExcerpt {
  readonly text: string;
  /** Where in the text the problem stands, from 0. */
  readonly caret: number;
}

/**
 * A line of the config as it may be shown: the check may run where others read what it prints. Of a file that could not be read nobody knows
 * where its secrets stand, so that whatever could be one is left out. Null where there is nothing to show.
 */
export function configExcerpt(
  lines: readonly string[],
  { line, column }: { readonly line: number; readonly column: number },
  redact: Redact,
  wasRead: boolean,
): ConfigExcerpt | null {
  const text = lines[line - 1];
  if (text === undefined || text.length > TOO_LONG) return null;
  if (!wasRead && isBelowSecrets(lines, line - 1)) return null;
  const harmless = (part: string): string => {
    const plain = redact(part).replace(NAMED_SECRET, "$1[secret]").replace(PASSWORD_IN_ADDRESS, "$1[secret]@");
    return wasRead ? plain : plain.replace(MAY_HOLD_SECRETS, "$1…");
  };
  const shown = harmless(text);
  return { text: shown, caret: Math.min(harmless(text.slice(0, column - 1)).length, shown.length) };
}

/** Whether a key that may hold secrets stands above the line and further left. */
function isBelowSecrets(lines: readonly string[], index: number): boolean {
  let indent = indentOf(lines[index] ?? "");
  for (let above = index - 1; above >= 0; above--) {
    const text = lines[above] ?? "";
    const [, spaces, key] = KEY_OF_A_LINE.exec(text) ?? [];
    if (spaces === undefined || spaces.length >= indent) continue;
    if (MAY_HOLD_SECRETS.test(`${key}:`) || MAY_HOLD_SECRETS.test(text)) return true;
    indent = spaces.length;
  }
  return false;
}

function indentOf(text: string): number {
  return text.trim() === "" ? Number.POSITIVE_INFINITY : text.length - text.trimStart().length;
}
