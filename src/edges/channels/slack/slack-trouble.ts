import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from "@slack/web-api";
import { ChannelTrouble, SendTrouble } from "../../../kernel/channel.ts";
import { messageOf } from "../../../kernel/failure.ts";
import { unanswered } from "../http-calls.ts";

/** The account itself is not accepted: whatever it wants, it is told the same. */
const WHOLE = new Set([
  "invalid_auth",
  "not_authed",
  "account_inactive",
  "token_revoked",
  "token_expired",
  "not_allowed_token_type",
  "user_removed_from_team",
  "team_disabled",
  "team_access_not_granted",
  "org_login_required",
  "access_denied",
]);
/** Nothing was done, and nothing is wrong with what was asked. */
const LATER = new Set(["ratelimited", "rate_limited", "service_unavailable", "team_added_to_org", "request_timeout"]);
/** Slack says of these that a part of it may have been done. */
const UNCLEAR = new Set(["internal_error", "fatal_error"]);
/** Answered by whatever stands before Slack, which has not heard of it then. */
const NOT_PASSED_ON = new Set([502, 503]);

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  channel_not_found: "the channel does not exist or the app cannot see it; invite the app there",
  not_in_channel: "the app is not in that channel; invite it there with /invite",
  is_archived: "the channel is archived; unarchive it, or write elsewhere",
  missing_scope: "the app lacks a right; add the scope under OAuth & Permissions and install the app again",
  restricted_action: "a setting of the workspace forbids it; ask its admins",
  msg_too_long: "the message is longer than Slack takes",
};

/** What became of a call to Slack. */
export function sendTroubleOf(error: unknown): SendTrouble {
  if (error instanceof SendTrouble) return error;
  if (error instanceof WebAPIRateLimitedError)
    return new SendTrouble("later", "Slack asks to wait", { afterMs: error.retryAfter * 1_000, cause: error });
  if (error instanceof WebAPIHTTPError) return httpTrouble(error);
  if (error instanceof WebAPIPlatformError) return platformTrouble(error);
  if (error instanceof WebAPIRequestError)
    return error.original instanceof SendTrouble ? error.original : unanswered(error.original, "Slack");
  return new SendTrouble("unclear", messageOf(error), { cause: error });
}

function httpTrouble(error: WebAPIHTTPError): SendTrouble {
  const { statusCode } = error;
  const message = `Slack answers ${statusCode}`;
  if (NOT_PASSED_ON.has(statusCode)) return new SendTrouble("later", message, { cause: error });
  return new SendTrouble(statusCode >= 500 ? "unclear" : "refused", message, { cause: error });
}

function platformTrouble(error: WebAPIPlatformError): SendTrouble {
  const { error: code, needed } = error.data as { error: string; needed?: string };
  // What is not JSON comes as if it were a name: something between us and Slack has answered.
  if (!/^[\w.:-]{1,100}$/.test(code)) return new SendTrouble("unclear", "Slack's answer cannot be understood", { cause: error });
  if (WHOLE.has(code))
    return new SendTrouble("refused", `Slack does not accept the token: ${code}; put a valid one into the config`, {
      isWhole: true,
      cause: error,
    });
  if (LATER.has(code)) return new SendTrouble("later", `Slack answers ${code}`, { cause: error });
  if (UNCLEAR.has(code)) return new SendTrouble("unclear", `Slack answers ${code}`, { cause: error });
  const advice = WHAT_TO_DO[code];
  const scope = needed ? ` (${needed})` : "";
  return new SendTrouble("refused", advice ? `${code}${scope}: ${advice}` : `Slack refuses it: ${code}${scope}`, { cause: error });
}

/** The same of what keeps an account from listening. `token`: which of them was shown. */
export function channelTroubleOf(error: unknown, token: "token" | "app_token"): ChannelTrouble {
  if (error instanceof ChannelTrouble) return error;
  const trouble = sendTroubleOf(error);
  const { kind, message, afterMs, isWhole } = trouble;
  if (kind !== "refused") return new ChannelTrouble("cut off", message, { ...(afterMs === null ? {} : { afterMs }), cause: error });
  return new ChannelTrouble("refused", isWhole ? message.replace("the token", `the ${token}`) : message, { cause: error });
}
