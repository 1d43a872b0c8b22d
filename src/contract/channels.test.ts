import { describe, expect, test } from "vitest";
import { accountsOf, channelsConfig } from "./channels.ts";

const accounts = (channels: unknown) => accountsOf(channelsConfig.parse(channels));

describe("the accounts of a config", () => {
  test("what stands under the platform is its account `default`, with everything decided", () => {
    expect(accounts({ telegram: { token: "t", allow: [7, "x"] } })).toMatchObject([
      {
        platform: "telegram",
        account: "default",
        allow: ["7", "x"],
        requireMention: true,
        delivery: "at_least_once",
        stream: true,
        receipts: "groups",
        maxFileBytes: 20 * 1_048_576,
      },
    ]);
    expect(accounts({ telegram: { token: "t" } })[0]?.token?.reveal()).toBe("t");
    expect(accounts({})).toEqual([]);
  });

  test("named accounts behave as the platform does where they say nothing, and have credentials of their own", () => {
    const [work, home] = accounts({
      telegram: {
        allow: ["7"],
        require_mention: false,
        delivery: "at_most_once",
        stream: false,
        receipts: "all",
        max_file_mb: 1,
        api_url: "http://127.0.0.1:8",
        accounts: {
          work: { token: "w" },
          home: { token: "h", allow: [], require_mention: true, delivery: "at_least_once", stream: true, receipts: "none", max_file_mb: 0 },
        },
      },
    });
    const inherited = { requireMention: false, delivery: "at_most_once", stream: false, receipts: "all", maxFileBytes: 1_048_576 };
    expect(work).toMatchObject({ account: "work", allow: ["7"], ...inherited, api_url: "http://127.0.0.1:8" });
    const own = { requireMention: true, delivery: "at_least_once", stream: true, receipts: "none", maxFileBytes: 0 };
    expect(home).toMatchObject({ account: "home", allow: [], ...own, api_url: "http://127.0.0.1:8" });
    expect([work?.token?.reveal(), home?.token?.reveal()]).toEqual(["w", "h"]);
  });

  test("credentials above named accounts are those of `default`, and nobody else's", () => {
    const found = accounts({ telegram: { token: "t", accounts: { work: { allow: ["*"] } } } });
    expect(found.map(({ account, token }) => [account, token?.reveal()])).toEqual([
      ["default", "t"],
      ["work", undefined],
    ]);
  });

  test("no account is shown with its secrets", () => {
    expect(JSON.stringify(accounts({ telegram: { token: "a-secret-token" } }))).not.toContain("a-secret-token");
  });
});
