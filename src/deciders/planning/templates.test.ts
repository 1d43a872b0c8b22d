import { expect, test } from "vitest";
import { renderTemplate, templateProblems } from "./templates.ts";

const input = {
  api: "Stripe",
  count: 3,
  deep: { a: { b: "inner" }, list: ["x", "y"] },
  no: null,
  trick: "{{input.secret}} {{item}}",
  secret: "s",
};

test.each([
  ["Research the {{input.api}} API", "Research the Stripe API"],
  ["{{ input.api }}{{input.count}}", "Stripe3"],
  ["{{input.deep.a.b}} {{input.deep.list.1}}", "inner y"],
  ["{{input.deep.list}} {{input.deep.a}} {{input.no}}", '["x","y"] {"b":"inner"} null'],
  ["nothing to replace: {input.api} { {input.api} } $& $1", "nothing to replace: {input.api} { {input.api} } $& $1"],
])("%s", (template, rendered) => {
  expect(renderTemplate(template, { input })).toBe(rendered);
});

test("an item and its fields", () => {
  expect(renderTemplate("{{item}}: {{item.name}}", { input: {}, item: { name: "a" } })).toBe('{"name":"a"}: a');
  expect(renderTemplate("{{item}}", { input: {}, item: "plain" })).toBe("plain");
  expect(renderTemplate("{{item}}", { input: {}, item: undefined })).toBe("null");
});

test("what was put in is not looked at again, and says nothing to the replacement either", () => {
  expect(renderTemplate("{{input.trick}}", { input })).toBe("{{input.secret}} {{item}}");
  expect(renderTemplate("{{input.dollar}}", { input: { dollar: "$& $1 $$" } })).toBe("$& $1 $$");
});

test.each([
  ["{{input.apu}}", '{{input.apu}}: there is no apu in input (did you mean "api"?)'],
  ["{{input.deep.c.d}}", "{{input.deep.c.d}}: there is no c in input.deep"],
  ["{{input.api.length}}", "{{input.api.length}}: input.api is no map"],
  ["{{input.no.x}}", "{{input.no.x}}: input.no is no map"],
  ["{{input.constructor}}", "there is no constructor in input"],
  ["{{input.__proto__}}", "there is no __proto__ in input"],
  ["{{item}}", "stands in a step without `foreach`"],
  ["{{input}}", "{{input}} names nothing"],
  ["{{1 + 1}}", "{{1 + 1}} names nothing"],
  ["{{process.env.HOME}}", "{{process.env.HOME}} names nothing"],
])("%s is refused with a reason", (template, message) => {
  expect(() => renderTemplate(template, { input })).toThrow(
    expect.objectContaining({ code: "step.bad_template", message: expect.stringContaining(message) }),
  );
});

test("mistakes are found before there are values", () => {
  expect(templateProblems("{{input.x}} {{ item.y }} {plain}", true)).toEqual([]);
  expect(templateProblems("a {{inputs.x}}", false)).toEqual([
    { problem: "{{inputs.x}} names nothing: write {{input.<name>}} or {{item}}", offset: 2 },
  ]);
  expect(templateProblems("{{item}}", false)).toMatchObject([{ problem: "{{item}} stands in a step without `foreach`" }]);
  expect(templateProblems("{{input.a}} {{input.x}", false)).toEqual([{ problem: "{{input… is never closed", offset: 12 }]);
});

test("what becomes too long, or could not be stored, is refused", () => {
  const long = { long: "x".repeat(100_000), nul: "a\0b", half: "\ud800" };
  expect(renderTemplate("{{input.long}}".repeat(10), { input: long })).toHaveLength(1_000_000);
  const many = "{{input.long}}".repeat(7_000);
  expect(() => renderTemplate(many, { input: long })).toThrow("with {{input.long}} it is longer than 1000000 characters");
  expect(() => renderTemplate("{{input.long}}", { input: long }, 200)).toThrow("it is longer than 200 characters");
  for (const name of ["nul", "half"]) expect(() => renderTemplate(`{{input.${name}}}`, { input: long })).toThrow("NUL or half a character");
});
