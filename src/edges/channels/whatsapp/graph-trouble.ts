import { ChannelTrouble, SendTrouble } from "../../../kernel/channel.ts";
import { reasonOf, unanswered, waitAskedFor } from "../http-calls.ts";
import { GraphRefusal } from "./graph.ts";

const WHOM = "WhatsApp";

/** The token has ended, was taken back, or lacks the right. */
const NOT_ALLOWED = new Set([3, 10, 102, 190]);
/** The account is locked or was restricted: 368, 130497 and 131031. */
const LOCKED = new Set([368, 130_497, 131_031]);
/** Of the app, of the business account, of the phone number, and one that Meta imposes on numbers that were reported. */
const TOO_MUCH = new Set([4, 80_007, 130_429, 131_048]);
const TOO_MUCH_TO_ONE_PERSON = 131_056;
/** Meta lets one message through to the same person every six seconds in the long run. */
const ONE_PERSON_MS = 6_000;
const WINDOW_CLOSED = 131_047;
/** Not now: unknown errors and overload of Meta's own, and maintenance of the number. */
const NOT_NOW = new Set([1, 2, 131_000, 131_016, 131_057, 133_004]);

/** What became of something that was sent. */
export function sendTrouble(error: unknown, now: number): SendTrouble {
  if (error instanceof SendTrouble) return error;
  if (!(error instanceof GraphRefusal)) return unanswered(error, WHOM);
  const { code, status, message } = error;
  const asked = waitAskedFor(error.headers, now);
  const later = (isWhole: boolean, atLeast?: number): SendTrouble => {
    const afterMs = asked ?? atLeast;
    return new SendTrouble("later", message, { isWhole, ...(afterMs === undefined ? {} : { afterMs }), cause: error });
  };
  if (code === WINDOW_CLOSED)
    return new SendTrouble("refused", `WhatsApp takes replies only within 24 hours of the person's last message: ${message}`, {
      cause: error,
    });
  if (code === TOO_MUCH_TO_ONE_PERSON) return later(false, ONE_PERSON_MS);
  if (TOO_MUCH.has(code) || status === 429) return later(true);
  if (isShutOut(error)) return new SendTrouble("refused", message, { isWhole: true, cause: error });
  if (NOT_NOW.has(code)) return later(false);
  // Something between us and Meta has answered: whether the message went through, it cannot say.
  if (status >= 500) return new SendTrouble("unclear", message, { cause: error });
  return new SendTrouble("refused", message, { cause: error });
}

/** Why the account does not work. */
export function accountTrouble(error: unknown, now: number): ChannelTrouble {
  if (!(error instanceof GraphRefusal))
    return new ChannelTrouble("cut off", `${WHOM} cannot be reached: ${reasonOf(error)}`, { cause: error });
  const { code, status, message } = error;
  const isKnown = isShutOut(error) || (status >= 400 && status < 500 && status !== 429 && !TOO_MUCH.has(code) && !NOT_NOW.has(code));
  const asked = waitAskedFor(error.headers, now);
  return new ChannelTrouble(isKnown ? "refused" : "cut off", message, { ...(asked === undefined ? {} : { afterMs: asked }), cause: error });
}

function isShutOut({ code, status }: GraphRefusal): boolean {
  return NOT_ALLOWED.has(code) || LOCKED.has(code) || (code >= 200 && code < 300) || status === 401 || status === 403;
}
