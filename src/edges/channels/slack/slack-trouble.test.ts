import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from "@slack/web-api";
import { expect, test } from "vitest";
import { channelTroubleOf, sendTroubleOf } from "./slack-trouble.ts";

const said = (error: string, more = {}): WebAPIPlatformError =>
  new WebAPIPlatformError({ ok: false, error, response_metadata: {}, ...more });
const answered = (status: number): WebAPIHTTPError => new WebAPIHTTPError(status, "", {}, "");
const failed = (code: string): WebAPIRequestError => new WebAPIRequestError(new Error("fetch failed", { cause: { code } }));

test.for([
  [said("internal_error"), "unclear", false],
  [said("fatal_error"), "unclear", false],
  [said("<html>a proxy</html>"), "unclear", false],
  [answered(500), "unclear", false],
  [answered(504), "unclear", false],
  [failed("ECONNRESET"), "unclear", false],
  [new Error("anything"), "unclear", false],
  [answered(503), "later", false],
  [said("service_unavailable"), "later", false],
  [said("ratelimited"), "later", false],
  [new WebAPIRateLimitedError(7), "later", false],
  [failed("ECONNREFUSED"), "later", true],
  [said("not_in_channel"), "refused", false],
  [said("something_new"), "refused", false],
  [answered(404), "refused", false],
  [said("token_revoked"), "refused", true],
  [said("account_inactive"), "refused", true],
] as const)("only what Slack has not done is sent again as if nothing were: %s is %s", ([error, kind, isWhole]) => {
  expect(sendTroubleOf(error)).toMatchObject({ kind, isWhole });
});

test("what only the operator can mend keeps an account refused; all else is tried again", () => {
  expect(channelTroubleOf(said("invalid_auth"), "app_token")).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("the app_token"),
  });
  expect(channelTroubleOf(said("missing_scope", { needed: "connections:write" }), "app_token")).toMatchObject({
    kind: "refused",
    message: expect.stringContaining("connections:write"),
  });
  expect(channelTroubleOf(new WebAPIRateLimitedError(7), "token")).toMatchObject({ kind: "cut off", afterMs: 7_000 });
  expect(channelTroubleOf(failed("ENOTFOUND"), "token")).toMatchObject({ kind: "cut off", afterMs: null });
});
