import { expect, test } from "vitest";
import { callsNobody, mentionedIn, readable } from "./slack-text.ts";

const self = { id: "U0BOT", name: "guildhall" };
const nameOf = (id: string): string | null => ({ U8: "Bob" })[id] ?? null;

test.for([
  ["<@U0BOT> /help", "/help"],
  ["<@U0BOT|guildhall>: <@U0BOT> do it <@U0BOT>", "do it"],
  ["tell <@U0BOT> apart", "tell @guildhall apart"],
  ["<@U0BOT>", "@guildhall"],
  ["<@U0BOTS> hi", "@U0BOTS hi"],
  ["<@U8> and <@U9|eve> and <@UX>", "@Bob and @eve and @UX"],
  [
    "<https://a.example> <https://a.example|https://a.example> <https://a.example|here>",
    "https://a.example https://a.example here (https://a.example)",
  ],
  ["<!subteam^S1|@ops> <!date^1^{date}|today> <!everyone>", "@ops today @everyone"],
  ["&amp;lt; is not &lt;", "&lt; is not <"],
  ["1 &lt; 2 &gt; 1", "1 < 2 > 1"],
  ["", ""],
] as const)("%s is read as %s", ([written, read]) => {
  expect(readable(written, self, nameOf)).toBe(read);
});

test("everybody who is named is found once", () => {
  expect(mentionedIn("<@U1> <@U2|b> <@U1> @U3 &lt;@U4&gt;")).toEqual(["U1", "U2"]);
});

test("whatever is written, nobody is called by it", () => {
  for (const word of ["<!channel>", "<!here|here>", "<!subteam^S1>", "```<!everyone>```"]) expect(callsNobody(word)).not.toContain("<!");
});
