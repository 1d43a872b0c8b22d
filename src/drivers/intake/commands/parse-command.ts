/** `/name@bot arguments`, as somebody typed it. The name is in lower case; a bot's name is dropped: who posts here is meant. */
export interface ParsedCommand {
  readonly name: string;
  readonly args: readonly string[];
}

const NAME = /^[\s\p{Cf}]*\/([a-z][a-z0-9_]{0,31})(?:@[\w.-]{1,64})?(?=[\s\p{Cf}]|$)/iu;
/** What nobody sees comes with pasted text; no command takes it, and /stop must not be missed for it. */
const UNSEEN = /\p{Cf}/gu;
/** Phones make curly quotes of straight ones. */
const ARGUMENT = /"([^"]*)"|'([^']*)'|“([^”]*)”|(\S+)/g;
/** No command takes as many; what comes after them is not looked at. */
const MAX_ARGUMENTS = 10;
const LOOKED_AT = 2_000;

export function parseCommand(text: string): ParsedCommand | undefined {
  const [beginning, name] = NAME.exec(text) ?? [];
  if (beginning === undefined || name === undefined) return undefined;
  const args: string[] = [];
  const after = text.slice(beginning.length, beginning.length + LOOKED_AT).replace(UNSEEN, "");
  for (const [, double, single, curly, word] of after.matchAll(ARGUMENT)) {
    args.push(double ?? single ?? curly ?? word ?? "");
    if (args.length === MAX_ARGUMENTS) break;
  }
  return { name: name.toLowerCase(), args };
}
