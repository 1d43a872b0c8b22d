import { describe, expect, test } from "vitest";
import { routerFor, writtenAddress, writtenConfig } from "./written-rules.ts";

/**
 * Rules for the agents a, b, c … | an address | the agent and the tier that contract.md §2 gives it.
 * `main` is the default agent. Rules stand in the order of the file.
 */
type Case = readonly [rules: string, address: string, expected: string];

function check(cases: readonly Case[], more: object = {}): void {
  test.each(cases)("%s ⇐ %s → %s", (rules, address, expected) => {
    const router = routerFor(writtenConfig(rules, more));
    const decision = router.route(writtenAddress(address));
    expect(`${decision.agent} ${decision.tier}`).toBe(expected);
    const explained = router.explain(writtenAddress(address));
    expect({ ...explained, trace: [] }).toEqual(decision);
    const hits = explained.trace.filter((line) => line.hit);
    expect(hits.map((line) => line.binding)).toEqual(decision.binding === null ? [] : [decision.binding]);
  });
}

describe("each tier", () => {
  check([
    ["telegram -1 topic=42", "telegram -1 topic=42", "a topic"],
    ["telegram -1 topic=42", "telegram -1 topic=43", "main default"],
    ["telegram -1 topic=42", "telegram -1", "main default"],
    ["telegram -1 topic=42", "telegram -2 topic=42", "main default"],
    ["telegram -1 topic=42", "discord -1 topic=42", "main default"],
    ["telegram -1", "telegram -1", "a chat"],
    ["telegram -1", "telegram -1 topic=42", "a chat"],
    ["telegram -1", "telegram -1 dm", "a chat"],
    ["telegram -1", "telegram -2", "main default"],
    ["telegram -1", "slack -1", "main default"],
    ["telegram peer=7", "telegram -1 peer=7", "a peer"],
    ["telegram peer=7", "telegram 7 peer=7 dm", "a peer"],
    ["telegram peer=7", "telegram 7 peer=8", "main default"],
    ["telegram peer=7", "discord 7 peer=7", "main default"],
    ["discord guild=g channel", "discord x guild=g channel", "a guild+type"],
    ["discord guild=g channel", "discord x guild=g group", "main default"],
    ["discord guild=g channel", "discord x guild=h channel", "main default"],
    ["discord guild=g channel", "discord x channel", "main default"],
    ["discord guild=g roles=mod", "discord x guild=g roles=mod", "a guild+type"],
    ["discord guild=g roles=mod", "discord x guild=g roles=vip", "main default"],
    ["discord guild=g roles=mod", "discord x guild=h roles=mod", "main default"],
    ["discord guild=g", "discord x guild=g", "a guild"],
    ["discord guild=g", "discord x guild=g channel topic=1 roles=mod", "a guild"],
    ["discord guild=g", "discord x guild=h", "main default"],
    ["discord guild=g", "discord g", "main default"],
    ["telegram dm", "telegram 7 dm", "a type"],
    ["telegram group", "telegram -1 group", "a type"],
    ["slack channel", "slack C1 channel", "a type"],
    ["telegram dm", "telegram 7 group", "main default"],
    ["telegram dm", "slack 7 dm", "main default"],
    ["telegram", "telegram -1", "a platform"],
    ["telegram", "telegram -1 topic=42 dm peer=7 roles=x", "a platform"],
    ["telegram", "whatsapp -1", "main default"],
    ["telegram account=work", "telegram -1 account=work", "a platform"],
    ["telegram account=work", "telegram -1", "main default"],
    ["", "telegram -1", "main default"],
    ["irc #chat", "irc #chat", "a chat"],
    ["irc", "irc #other", "a platform"],
  ]);
});

/** Each tier against the next ones, in both orders of the file. */
describe("a tier beats every later one, wherever it stands in the file", () => {
  const rules = [
    ["topic", "x C topic=T"],
    ["chat", "x C"],
    ["peer", "x peer=P"],
    ["guild+type", "x guild=G channel"],
    ["guild+type", "x guild=G roles=R"],
    ["guild", "x guild=G"],
    ["type", "x channel"],
    ["platform", "x account=A"],
    ["platform", "x"],
  ] as const;
  const everything = "x C topic=T peer=P guild=G channel account=A roles=R";
  const pairs = rules.flatMap(([tier, rule], index) =>
    rules.slice(index + 1).flatMap(([later, other]): Case[] => {
      if (tier === later) return [];
      return [
        [`${rule} | ${other}`, everything, `a ${tier}`],
        [`${other} | ${rule}`, everything, `b ${tier}`],
      ];
    }),
  );
  check(pairs);
});

describe("a rule's tier is that of its most specific field", () => {
  check([
    ["x C peer=P", "x C peer=P", "a chat"],
    ["x C peer=P", "x C peer=Q", "main default"],
    ["x C topic=T peer=P", "x C topic=T peer=P", "a topic"],
    ["x C guild=G", "x C guild=G", "a chat"],
    ["x C dm", "x C dm", "a chat"],
    ["x C dm", "x C group", "main default"],
    ["x peer=P guild=G", "x d peer=P guild=G", "a peer"],
    ["x peer=P guild=G", "x d peer=P guild=H", "main default"],
    ["x peer=P dm", "x d peer=P dm", "a peer"],
    ["x peer=P guild=G roles=R", "x d peer=P guild=G roles=R", "a peer"],
    ["x guild=G account=A", "x d guild=G account=A", "a guild"],
    ["x guild=G channel roles=R", "x d guild=G channel roles=R", "a guild+type"],
    ["x guild=G channel roles=R", "x d guild=G group roles=R", "main default"],
    ["x dm account=A", "x d dm account=A", "a type"],
    ["x peer=P account=A | x C", "x C peer=P account=A", "b chat"],
    ["x peer=P guild=G channel roles=R account=A | x C", "x C peer=P guild=G channel roles=R account=A", "b chat"],
    ["x guild=G channel roles=R account=A | x peer=P", "x C peer=P guild=G channel roles=R account=A", "b peer"],
  ]);
});

describe("within a tier, whoever names more wins", () => {
  check([
    ["x C | x C peer=P", "x C peer=P", "b chat"],
    ["x C peer=P | x C", "x C peer=P", "a chat"],
    ["x C | x C peer=P", "x C peer=Q", "a chat"],
    ["x C | x C account=A", "x C account=A", "b chat"],
    ["x C | x C account=A", "x C account=B", "a chat"],
    ["x C peer=P | x C peer=P dm", "x C peer=P dm", "b chat"],
    ["x C topic=T | x C topic=T peer=P", "x C topic=T peer=P", "b topic"],
    ["x C topic=T | x C topic=T peer=P | x C topic=T peer=P account=A", "x C topic=T peer=P account=A", "c topic"],
    ["x peer=P | x peer=P dm", "x c peer=P dm", "b peer"],
    ["x peer=P | x peer=P guild=G", "x c peer=P guild=G", "b peer"],
    ["x guild=G channel | x guild=G channel roles=R", "x c guild=G channel roles=R", "b guild+type"],
    ["x guild=G roles=R | x guild=G channel roles=R", "x c guild=G channel roles=S", "main default"],
    ["x guild=G | x guild=G account=A", "x c guild=G account=A", "b guild"],
    ["x dm | x dm account=A", "x c dm account=A", "b type"],
    ["x | x account=A", "x c account=A", "b platform"],
    ["x | x account=A", "x c account=B", "a platform"],
    ["x | x account=default", "x c", "b platform"],
    ["x C guild=G | x C guild=G dm peer=P account=A", "x C guild=G dm peer=P account=A", "b chat"],
  ]);
});

describe("then the order in the file decides", () => {
  check([
    ["x C | x C", "x C", "a chat"],
    ["x C peer=P | x C account=A", "x C peer=P account=A", "a chat"],
    ["x C account=A | x C peer=P", "x C peer=P account=A", "a chat"],
    ["x C guild=G | x C dm", "x C guild=G dm", "a chat"],
    ["x guild=G channel | x guild=G roles=R", "x c guild=G channel roles=R", "a guild+type"],
    ["x guild=G roles=R | x guild=G channel", "x c guild=G channel roles=R", "a guild+type"],
    ["x guild=G roles=R | x guild=G roles=S", "x c guild=G roles=S,R", "a guild+type"],
    ["x guild=G roles=S | x guild=G roles=R", "x c guild=G roles=S,R", "a guild+type"],
    ["x | x", "x c", "a platform"],
    ["x dm | x dm | x dm", "x c dm", "a type"],
    ["y C | x C | x C", "x C", "b chat"],
    ["x C topic=T peer=P | x C topic=T guild=G", "x C topic=T peer=P guild=G", "a topic"],
  ]);
});

describe('"*" asks that the field is there, and counts for nothing', () => {
  check([
    ["whatsapp *", "whatsapp 123", "a platform"],
    ["whatsapp *", "telegram 123", "main default"],
    ["whatsapp * | whatsapp", "whatsapp 1", "a platform"],
    ["whatsapp | whatsapp *", "whatsapp 1", "a platform"],
    ["whatsapp * | whatsapp 1", "whatsapp 1", "b chat"],
    ["x chat=*", "x C", "a platform"],
    ["x C topic=*", "x C topic=42", "a chat"],
    ["x C topic=*", "x C", "main default"],
    ["x C topic=* | x C", "x C topic=42", "a chat"],
    ["x C | x C topic=*", "x C topic=42", "a chat"],
    ["x C topic=* | x C", "x C", "b chat"],
    ["x C topic=* | x C topic=42", "x C topic=42", "b topic"],
    ["x chat=* topic=*", "x C topic=42", "a platform"],
    ["x chat=* topic=*", "x C", "main default"],
    ["x account=*", "x C", "a platform"],
    ["x | x account=*", "x C account=A", "a platform"],
    ["x account=* | x account=A", "x C account=A", "b platform"],
    ["x C account=* | x C account=A", "x C account=A", "b chat"],
    ["x guild=*", "x C guild=G", "a platform"],
    ["x guild=*", "x C", "main default"],
    ["x guild=* | x", "x C", "b platform"],
    ["x guild=* | x", "x C guild=G", "a platform"],
    ["x guild=* | x guild=G", "x C guild=G", "b guild"],
    ["x guild=* channel", "x C guild=G channel", "a type"],
    ["x guild=* channel", "x C channel", "main default"],
    ["x guild=* channel | x guild=G", "x C guild=G channel", "b guild"],
    ["x guild=G chat_type=*", "x C guild=G dm", "a guild"],
    ["x chat_type=*", "x C channel", "a platform"],
    ["x chat_type=* | x dm", "x C dm", "b type"],
    ["x peer=*", "x C peer=P", "a platform"],
    ["x peer=* | x peer=P", "x C peer=P", "b peer"],
    ["x C peer=* | x C", "x C peer=P", "a chat"],
    ["x C | x C peer=*", "x C peer=P", "a chat"],
    ["x guild=G roles=*", "x C guild=G roles=mod", "a guild"],
    ["x guild=G roles=*", "x C guild=G", "main default"],
    ["x guild=G roles=* | x guild=G roles=mod", "x C guild=G roles=mod", "b guild+type"],
    ["x guild=G | x guild=G roles=*", "x C guild=G roles=mod", "a guild"],
    ["x guild=G roles=* | x guild=G", "x C guild=G", "b guild"],
    ["x guild=G roles=mod,* | x guild=G", "x C guild=G roles=vip", "a guild"],
    ["x guild=G channel roles=*", "x C guild=G channel roles=mod", "a guild+type"],
    ["x guild=* peer=P", "x C peer=P", "main default"],
    ["x guild=* peer=P", "x C peer=P guild=G", "a peer"],
  ]);
});

describe("accounts, roles, teams, topics", () => {
  check([
    ["telegram -1", "telegram -1 account=work", "a chat"],
    ["telegram -1 account=work", "telegram -1", "main default"],
    ["telegram -1 account=work | telegram -1 account=home", "telegram -1 account=home", "b chat"],
    ["telegram account=work | telegram account=home", "telegram -1 account=home", "b platform"],
    ["telegram account=default", "telegram -1", "a platform"],
    ["telegram account=default", "telegram -1 account=work", "main default"],
    ["x guild=G roles=R,S", "x C guild=G roles=S", "a guild+type"],
    ["x guild=G roles=R,S", "x C guild=G roles=T", "main default"],
    ["x guild=G roles=R,S", "x C guild=G roles=T,R,U", "a guild+type"],
    ["x guild=G roles=R,S", "x C guild=G", "main default"],
    ["x guild=G roles=R | x guild=G roles=R,S", "x C guild=G roles=R,S", "a guild+type"],
    ["x guild=G roles=R,S,T | x guild=G roles=R", "x C guild=G roles=R", "a guild+type"],
    ["x C guild=G roles=R", "x C guild=G roles=R", "a chat"],
    ["slack team=T1", "slack C1 guild=T1", "a guild"],
    ["slack team=T1 channel", "slack C1 guild=T1 channel", "a guild+type"],
    ["slack team=T1 roles=R | slack guild=T1", "slack C1 guild=T1 roles=R", "a guild+type"],
    ["slack team=* | slack", "slack C1", "b platform"],
    ["telegram -1 topic=42 | telegram -1", "telegram -1 topic=7", "b chat"],
    ["telegram -1 | telegram -1 topic=42", "telegram -1 topic=42", "b topic"],
    ["telegram -1 topic=42 | telegram -1 topic=43", "telegram -1 topic=43", "b topic"],
    ["telegram -1 topic=42 | telegram -2", "telegram -2 topic=42", "b chat"],
    ["telegram -1 topic=42 | telegram peer=7", "telegram -1 topic=1 peer=7", "b peer"],
    ["telegram -1 topic=42 | telegram", "telegram -1 topic=1", "b platform"],
    ["x C topic=T account=A | x C", "x C topic=T account=B", "b chat"],
  ]);
});

describe("ids are compared as they are", () => {
  check([
    ["x C", "x c", "main default"],
    ["X C", "x C", "main default"],
    ["x 042", "x 42", "main default"],
    ["x C", "x C2", "main default"],
    ["x guild=null", "x C", "main default"],
    ["x C topic=null", "x C", "main default"],
    ["x constructor", "x toString", "main default"],
    ["x __proto__", "x __proto__", "a chat"],
    ["x peer=-1", "x -1", "main default"],
    ["x ein-blatt-äöü", "x ein-blatt-äöü", "a chat"],
  ]);
});

describe("unrouted: refuse switches the default off for channels, and not for the operator's own terminal", () => {
  check(
    [
      ["telegram -1", "telegram -1", "a chat"],
      ["telegram -1", "telegram -2", "null none"],
      ["", "telegram -2", "null none"],
      ["", "terminal t dm", "main default"],
      ["terminal", "terminal t dm", "a platform"],
    ],
    { unrouted: "refuse" },
  );
});

describe("the default agent: the one with `default: true`, else `main`, else the only one", () => {
  const rest = { bindings: [] };
  check([["", "x C", "coder default"]], { ...rest, agents: { main: {}, coder: { default: true } } });
  check([["", "x C", "main default"]], { ...rest, agents: { coder: {}, main: {} } });
  check([["", "x C", "coder default"]], { ...rest, agents: { coder: {} } });
  check([["", "x C", "main default"]], { ...rest, agents: { main: { default: true }, coder: {} } });
  check([["", "x C", "coder default"]], { ...rest, agents: { coder: { default: true }, ops: {} } });
});
