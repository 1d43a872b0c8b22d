import { GrammyError, HttpError } from "grammy";
import { ChannelTrouble, SendTrouble } from "../../../kernel/channel.ts";

/** A token may be made valid again, and until then every reply waits. */
const BAD_TOKEN_MS = 60_000;

/**
 * What went wrong with a message of ours. The client's own errors are not passed on: they hold what was said, and addresses with the token.
 */
export function sendTroubleOf(error: unknown): SendTrouble {
  if (error instanceof SendTrouble) return error;
  const refusal = refusalIn(error);
  if (!refusal) {
    const { reason, hasLeft } = lossOf(error);
    if (hasLeft) return new SendTrouble("unclear", `the connection to Telegram was lost before its answer (${reason})`);
    return new SendTrouble("later", `Telegram cannot be reached (${reason})`, { isWhole: true });
  }
  const { status, words, afterMs } = refusal;
  const said = `Telegram says ${status}: ${words}`;
  if (status === 429) return new SendTrouble("later", said, afterMs === null ? {} : { afterMs });
  if (isBadToken(status)) return new SendTrouble("later", said, { isWhole: true, afterMs: BAD_TOKEN_MS });
  // Who answers 503 has not begun; of the others nobody knows how far they got.
  if (status === 503) return new SendTrouble("later", said, { isWhole: true });
  return new SendTrouble(status >= 500 ? "unclear" : "refused", said);
}

/** What went wrong with listening, or with fetching a file. */
export function channelTroubleOf(error: unknown): ChannelTrouble {
  if (error instanceof ChannelTrouble) return error;
  const refusal = refusalIn(error);
  if (!refusal) return new ChannelTrouble("cut off", `Telegram cannot be reached (${lossOf(error).reason})`);
  const { status, words, afterMs } = refusal;
  if (isBadToken(status))
    return new ChannelTrouble("refused", `Telegram does not know the token (${status}: ${words}): take the one that @BotFather shows`);
  if (status === 409)
    return new ChannelTrouble(
      "cut off",
      `somebody else takes the messages of this bot (${words}): stop the other program, or let @BotFather make a new token`,
    );
  return new ChannelTrouble("cut off", `Telegram says ${status}: ${words}`, afterMs === null ? {} : { afterMs });
}

/** The platform has answered, and this is why it did not do it. */
export function refusalIn(error: unknown): { status: number; words: string; afterMs: number | null; movedTo: string | null } | undefined {
  if (!(error instanceof GrammyError)) return undefined;
  const { retry_after, migrate_to_chat_id } = error.parameters;
  return {
    status: error.error_code,
    words: error.description,
    afterMs: retry_after === undefined ? null : retry_after * 1_000,
    movedTo: migrate_to_chat_id === undefined ? null : String(migrate_to_chat_id),
  };
}

/** Whether it was refused in such words: of a status 400, they are all that says why. */
export function isRefusedFor(error: unknown, words: RegExp): boolean {
  const refusal = refusalIn(error);
  return refusal?.status === 400 && words.test(refusal.words);
}

/** The first for a token that was taken back, the second for what has not the form of one. */
function isBadToken(status: number): boolean {
  return status === 401 || status === 404;
}

const BEFORE_ANYTHING = ["connect", "getaddrinfo"];
const TLS = /^(CERT_|ERR_TLS_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** `hasLeft`: the request may have reached somebody. */
function lossOf(error: unknown): { readonly reason: string; readonly hasLeft: boolean } {
  for (let cause = error; cause instanceof Error; cause = cause instanceof HttpError ? cause.error : cause.cause) {
    const { code, syscall, errors } = cause as NodeJS.ErrnoException & { errors?: readonly NodeJS.ErrnoException[] };
    if (typeof code !== "string") continue;
    const isUnsent =
      BEFORE_ANYTHING.includes(syscall ?? errors?.[0]?.syscall ?? "") || code === "UND_ERR_CONNECT_TIMEOUT" || TLS.test(code);
    return { reason: code, hasLeft: !isUnsent };
  }
  return { reason: "no answer in time", hasLeft: true };
}
