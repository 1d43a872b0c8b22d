// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { encodeNames } from "./names-in-yaml.ts";
import { editYaml } from "./yaml-edit.ts";

const add = (text: string, id = "coder", value: unknown = { tools: "coding" }) =>
  editYaml(text, [{ kind: "set", path: ["agents", id], value }]);
const pause = (text: string, id: string) => editYaml(text, [{ kind: "set", path: ["agents", id, "state"], value: "paused" }]);
const bind = (text: string) => editYaml(text, [{ kind: "append", path: ["bindings"], value: { agent: "coder", telegram: "-100" } }]);

const TIDY = `# The guild.
model:   a/b        # aligned by hand


agents:
  # the boss
  main: {default: true}   # never asleep
  'ops':
    personality: |
      You watch.

      And report.
    env: { KEY: \${OPS_KEY} }

  empty:
  # more to come

channels:
  telegram: { token: \${TOKEN}, allow: [ 7,8 ] }
`;

describe("only what was asked for changes", () => {
  test("an agent is added after the last one", () => {
    expect(add(TIDY)).toBe(TIDY.replace("  empty:\n", "  empty:\n  coder:\n    tools: coding\n"));
  });

  test("comments below an agent stay below it", () => {
    const text = "agents:\n  main:\n    default: true # yes\n    # tools: coding\n    # model: a/b\n  # next\n\n# end\n";
    expect(add(text)).toBe(text.replace("  # next\n", "  coder:\n    tools: coding\n  # next\n"));
    expect(pause(text, "main")).toBe(text.replace("# yes\n", "# yes\n    state: paused\n"));
    expect(add("agents:\n  main:\n    # nothing yet")).toBe("agents:\n  main:\n    # nothing yet\n  coder:\n    tools: coding\n");
  });

  test("a state is set in a block, in a flow map, under a key with nothing, and changed where it is", () => {
    expect(pause(TIDY, "ops")).toBe(TIDY.replace("_KEY} }\n", "_KEY} }\n    state: paused\n"));
    expect(pause(TIDY, "main")).toBe(TIDY.replace("{default: true}", "{default: true, state: paused}"));
    expect(pause(TIDY, "empty")).toBe(TIDY.replace("  empty:\n", "  empty:\n    state: paused\n"));
    const paused = pause(TIDY, "main");
    expect(editYaml(paused, [{ kind: "set", path: ["agents", "main", "state"], value: "active" }])).toBe(
      TIDY.replace("{default: true}", "{default: true, state: active}"),
    );
  });

  test("a list is begun at the end, and continued", () => {
    const begun = bind(TIDY);
    expect(begun).toBe(`${TIDY}\nbindings:\n  - { agent: coder, telegram: "-100" }\n`);
    expect(bind(begun)).toBe(`${begun}  - { agent: coder, telegram: "-100" }\n`);
    expect(bind("bindings: []\n")).toBe('bindings: [ { agent: coder, telegram: "-100" } ]\n');
    expect(bind("bindings: [{ agent: a, web: x }] # all\n")).toBe(
      'bindings: [{ agent: a, web: x }, { agent: coder, telegram: "-100" }] # all\n',
    );
    expect(bind("bindings:\n- agent: a\n  web: x\nmodel: a/b\n")).toBe(
      'bindings:\n- agent: a\n  web: x\n- { agent: coder, telegram: "-100" }\nmodel: a/b\n',
    );
  });

  test("a last line without an end gets one, lines that end in CR LF go on so", () => {
    expect(add("agents:\n  main: {}")).toBe("agents:\n  main: {}\n  coder:\n    tools: coding\n");
    expect(add("agents:\r\n  main: {}\r\nmodel: a/b\r\n")).toBe("agents:\r\n  main: {}\r\n  coder:\r\n    tools: coding\r\nmodel: a/b\r\n");
  });

  test("a block of text at the end of a section stays whole", () => {
    expect(add("agents:\n  main:\n    personality: >-\n      two\n      lines\n\n\nmodel: a/b\n")).toMatch(
      /^agents:\n {2}main:\n {4}personality: >-\n {6}two\n {6}lines\n[\s]*coder:\n {4}tools: coding\n[\s]*model: a\/b\n$/,
    );
  });
});

test("an empty file, and one of comments only, get the section", () => {
  expect(add("")).toBe("agents:\n  coder:\n    tools: coding\n");
  expect(add("# nothing yet\n")).toBe("# nothing yet\nagents:\n  coder:\n    tools: coding\n");
});

test("flow maps of one line and of many", () => {
  expect(add("agents: {main: {}}\n", "coder", {})).toBe("agents: {main: {}, coder: {}}\n");
  expect(add("agents: {}\n", "coder", {})).toBe("agents: { coder: {} }\n");
  expect(add("agents: {\n  main: {},\n  ops: {}\n}\n", "coder", {})).toBe("agents: {\n  main: {},\n  ops: {},\n  coder: {}\n}\n");
  expect(add("agents: {\r\n  main: {}, # one\r\n  ops: {} # two, last\r\n} # end\r\n")).toBe(
    "agents: {\r\n  main: {}, # one\r\n  ops: {}, # two, last\r\n  coder: { tools: coding }\r\n} # end\r\n",
  );
  expect(add("agents: {\n  main: { env: { A: ${A} } }, # last\n}\n")).toBe(
    "agents: {\n  main: { env: { A: ${A} } }, # last\n  coder: { tools: coding },\n}\n",
  );
  const shorthand = add("agents: {main: {}}\n");
  expect(parse(shorthand)).toEqual({ agents: { main: {}, coder: { tools: "coding" } } });
});

describe("at most one line of what was there changes, and the others keep their order", () => {
  test.each([
    "# top\n\nagents: # here\n  # before main\n  main: {} # main\n\n  coder:\n    # in coder\n    model: a/b\n    # end of coder\n  # after\n# last",
    "agents:\r\n  main: {} # x\r\n\r\n  coder: { tools: coding } # y\r\nbindings: []\r\n",
    "agents: {\n  main: {}, # one\n  coder: { env: { A: ${A} } } # two\n}\n",
    "\uFEFFagents:\n  main: {}\n  coder: {}\n",
    '{\n\t"agents": {\n\t\t"main": {},\n\t\t"coder": {}\n\t}\n}',
    "---\nagents:\n    main:\n        personality: |\n            two\n\n            lines\n    coder:\n        tools: coding\n...\n",
    "agents:\n  main:\n    personality: over\n      two lines # and a remark\n  coder:\n\nbindings:\n- { agent: main, web: x }\n# end\n",
    "\"agents\":\n  'main': {}   \n  'coder':  \n   \n",
  ])("%j", (text) => {
    for (const edited of [add(text, "third"), pause(text, "coder"), pause(text, "main"), bind(text)]) {
      const left = edited.split("\n");
      const lost = text.split("\n").filter((line) => {
        const at = left.indexOf(line);
        if (at >= 0) left.splice(0, at + 1);
        return at < 0;
      });
      expect(lost.length).toBeLessThanOrEqual(1);
      if (text.includes("\r\n")) expect(edited).not.toMatch(/[^\r]\n/);
    }
  });
});

test("JSON stays JSON, numbers that no number can hold included", () => {
  const text = '{\n  "agents": {\n    "main": {}\n  },\n  "bindings": [{"agent": "main", "discord": 12345678901234567890}]\n}\n';
  const edited = bind(pause(add(text), "main"));
  expect(edited).toContain('"discord": 12345678901234567890');
  expect(JSON.parse(edited)).toMatchObject({ agents: { main: { state: "paused" }, coder: { tools: "coding" } } });
  expect(edited.split("\n").slice(0, 2)).toEqual(text.split("\n").slice(0, 2));
});

test("texts that would mean something to YAML are quoted", () => {
  const personality = `yes: no\n# not a comment \${NAME} *x & 'y' "z"`;
  const edited = add("agents:\n  main: {}\n", "coder", { personality, roles: ["1", "on"] });
  expect(edited.split("\n")).toHaveLength(6);
  expect(parse(encodeNames(edited)).agents.coder).toEqual({ personality: encodeNames(personality), roles: ["1", "on"] });
});

test("what a program cannot change is refused in words, and a broken file too", () => {
  const refusal = (text: string) => {
    try {
      return pause(text, "coder");
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refusal("x: &a {}\nagents:\n  coder: *a\n")).toBe(
    "agents.coder.state cannot be changed by a program: something else stands there",
  );
  expect(refusal("agents: 7\n")).toMatch(/something else stands there/);
  expect(refusal("agents: {\n")).toMatch(/not valid YAML/);
});

test("a number is written as one, and a section is removed with its lines and no others", () => {
  const text = "# ours\nserver:\n  port: 80 # old\nstore: ${STORE} # here\n# them\nagents:\n  main: {}\n";
  const without = (...keys: string[]) =>
    editYaml(
      text,
      keys.map((key) => ({ kind: "remove" as const, path: [key], value: undefined })),
    );
  expect(without("server")).toBe(text.replace("server:\n  port: 80 # old\n", ""));
  expect(without("store")).toBe(text.replace("store: ${STORE} # here\n", ""));
  expect(parse(without("server", "store", "agents", "none"))).toEqual({});
  expect(parse(editYaml("{ server: { port: 1 }, model: a/b }", [{ kind: "remove", path: ["server"], value: undefined }]))).toEqual({
    model: "a/b",
  });
  const server = { host: "h", port: 4270 };
  expect(parse(editYaml("agents: { main: {} }\n", [{ kind: "set", path: ["server"], value: server }]))).toEqual({
    agents: { main: {} },
    server,
  });
});
