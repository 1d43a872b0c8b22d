import { describe, expect, test } from "vitest";
import { channelFindings } from "./channel-checks.ts";

const told = (channels: unknown, more: readonly string[] = []): string[] =>
  channelFindings({ channels }, more).map(({ severity, code, path, message }) => `${severity} ${code} ${path.join(".")}: ${message}`);

describe("what is wrong with accounts of channels", () => {
  test.each([
    [{ telegram: { token: "t" } }],
    [{ telegram: { accounts: { work: { token: "t" } } } }],
    [{ slack: { token: "t", app_token: "a" } }],
    [{ slack: { token: "t", signing_secret: "s" } }],
    [{ whatsapp: { token: "t", phone_number_id: 1, app_secret: "a", verify_token: "v" } }],
    [{ webhook: { secret: "s" } }],
    [{}],
  ])("nothing: %j", (channels) => {
    expect(told(channels)).toEqual([]);
  });

  test.each([
    [{ telegram: {} }, ["warning config.no_credential channels.telegram: the account cannot connect without token"]],
    [
      { slack: { token: "t" } },
      ["warning config.no_credential channels.slack: the account cannot connect without app_token or signing_secret"],
    ],
    [
      { telegram: { token: "t", accounts: { work: {} } } },
      ["warning config.no_credential channels.telegram.accounts.work: the account cannot connect without token"],
    ],
    [
      // What is written above the accounts makes an account of its own.
      { webhook: { url: "http://127.0.0.1:8", accounts: { work: { secret: "s" } } } },
      ["warning config.no_credential channels.webhook: the account cannot connect without secret"],
    ],
    [{ telegrm: {} }, [expect.stringMatching(/^warning config\.unknown_channel channels\.telegrm: .*did you mean "telegram"/)]],
    [{ toString: {} }, [expect.stringMatching(/^warning config\.unknown_channel channels\.toString: /)]],
  ])("%j", (channels, problems) => {
    expect(told(channels)).toEqual(problems);
  });

  test("a platform of the program around us is known, and its needs are its own", () => {
    expect(told({ matrix: {} })).toEqual([expect.stringContaining("config.unknown_channel")]);
    expect(told({ matrix: {} }, ["matrix"])).toEqual([]);
    expect(told({ telegram: {} }, ["telegram"])).toEqual([]);
  });

  test("what is no map is told once, by whoever checks forms", () => {
    expect(told({ telegram: null, matrix: 1 })).toEqual([]);
    expect(told({ telegram: { accounts: { work: null, home: { token: "t" } } } })).toEqual([]);
  });
});
