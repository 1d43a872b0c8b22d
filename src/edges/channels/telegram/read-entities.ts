import type { MessageEntity } from "grammy/types";

/** Who we are there. */
export interface Me {
  readonly id: number;
  readonly username: string;
}

/** What was written, and the places in it that Telegram knows the meaning of; they count in UTF-16, as texts here do. */
export interface Written {
  readonly text: string;
  readonly entities: readonly MessageEntity[];
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The bot that a command at the very beginning is meant for; null: for whoever reads it; undefined: it is none. */
export function commandedBot({ text, entities }: Written): string | null | undefined {
  const command = entities.find(({ type, offset }) => type === "bot_command" && offset === 0);
  if (!command) return undefined;
  return /@(\w+)$/.exec(text.slice(0, command.length))?.[1]?.toLowerCase() ?? null;
}

export function callsUs(written: Written, me: Me): boolean {
  return commandedBot(written) === me.username.toLowerCase() || mentionsOf(written, me).length > 0;
}

/** Without our name at its beginning or end, and in its command; in the middle it is a word of the sentence. */
export function withoutCall(written: Written, me: Me): string {
  const { text, entities } = written;
  if (commandedBot(written) === me.username.toLowerCase()) {
    const { length } = entities.find(({ type, offset }) => type === "bot_command" && offset === 0) as MessageEntity;
    return `${text.slice(0, length - me.username.length - 1)}${text.slice(length)}`.trim();
  }
  let from = 0;
  let to = text.length;
  const mentions = mentionsOf(written, me);
  for (const span of mentions) if (text.slice(from, span.from).trim() === "") from = afterPause(text, span.to);
  for (const span of mentions.toReversed()) if (span.from >= from && text.slice(span.to, to).trim() === "") to = span.from;
  return text.slice(from, to).trim();
}

function mentionsOf({ text, entities }: Written, me: Me): Span[] {
  const name = `@${me.username}`.toLowerCase();
  return entities
    .filter((entity) => {
      if (entity.type === "text_mention") return entity.user.id === me.id;
      return entity.type === "mention" && text.slice(entity.offset, entity.offset + entity.length).toLowerCase() === name;
    })
    .map(({ offset, length }) => ({ from: offset, to: offset + length }))
    .toSorted((one, other) => one.from - other.from);
}

/** As in "@bot, hello". */
function afterPause(text: string, from: number): number {
  return from + (/^[\s,:]*/.exec(text.slice(from))?.[0].length ?? 0);
}
