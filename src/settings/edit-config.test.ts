import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sha256 } from "../kernel/canonical-json.ts";
import { editConfig } from "./edit-config.ts";
import type { Edit } from "./yaml-edit.ts";

let home: string;
let file: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "guildhall-edit-"));
  file = join(home, "guildhall.yaml");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const text = () => readFileSync(file, "utf8");
const set = (path: string[], value: unknown): Edit[] => [{ kind: "set", path, value }];
const edit = (path: string[], value: unknown) => editConfig({ home }, {}, () => set(path, value));
const visible = () => readdirSync(home).filter((name) => !name.startsWith("."));

test("the first edit of a home makes its config, for this user alone", async () => {
  rmSync(home, { recursive: true });
  const edited = await edit(["model"], "offline/demo");
  expect(edited).toEqual({ file, hash: sha256("model: offline/demo\n"), changed: true, backup: null });
  expect(text()).toBe("model: offline/demo\n");
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("the text before is kept beside it, the newest five of them, and rights stay", async () => {
  writeFileSync(file, "# mine\nmodel: a/0\n");
  chmodSync(file, 0o640);
  const first = await edit(["model"], "a/1");
  expect(readFileSync(first.backup as string, "utf8")).toBe("# mine\nmodel: a/0\n");
  expect(statSync(first.backup as string).mode & 0o777).toBe(0o640);
  for (let index = 2; index < 10; index++) await edit(["model"], `a/${index}`);
  expect(text()).toBe("# mine\nmodel: a/9\n");
  expect(statSync(file).mode & 0o777).toBe(0o640);
  const kept = readdirSync(home).filter((name) => name.startsWith("guildhall.yaml.bak-"));
  expect(kept).toHaveLength(5);
  expect(kept.map((name) => readFileSync(join(home, name), "utf8").trim().at(-1)).sort()).toEqual(["4", "5", "6", "7", "8"]);
});

test("an edit that changes nothing touches nothing", async () => {
  writeFileSync(file, "model: a/1\n");
  const before = statSync(file).mtimeMs;
  expect(await edit(["model"], "a/1")).toMatchObject({ changed: false, backup: null });
  expect(statSync(file).mtimeMs).toBe(before);
  expect(visible()).toEqual(["guildhall.yaml"]);
});

test("an edit that would break the config is refused with the place, and nothing changes", async () => {
  writeFileSync(file, "model: a/1\n");
  await expect(edit(["model"], "nonsense")).rejects.toMatchObject({
    code: "config.invalid",
    message: expect.stringMatching(/guildhall\.yaml:1:8: model: expected <provider>/),
  });
  expect(text()).toBe("model: a/1\n");
  expect(visible()).toEqual(["guildhall.yaml"]);
});

test("one agent's broken section keeps nobody from changing another, and no second one may break", async () => {
  writeFileSync(file, "agents:\n  main: {}\n  broken: { nonsense: 1 }\n");
  await edit(["agents", "main", "state"], "paused");
  expect(text()).toBe("agents:\n  main: { state: paused }\n  broken: { nonsense: 1 }\n");
  await expect(edit(["agents", "main", "rolls"], ["a"])).rejects.toMatchObject({ code: "config.invalid" });
  writeFileSync(file, "agents:\n  main:\n    roles: []\n  broken: { model: a/b, model: a/b }\n");
  await edit(["agents", "main", "state"], "paused");
  expect(text()).toBe("agents:\n  main:\n    roles: []\n    state: paused\n  broken: { model: a/b, model: a/b }\n");
});

test("a file that cannot be read as a config is left alone", async () => {
  writeFileSync(file, "agents: [\n");
  await expect(edit(["model"], "a/1")).rejects.toMatchObject({ code: "config.invalid" });
  expect(text()).toBe("agents: [\n");
  const latin = Buffer.from("model: a/1\npersonality: caf\u00e9\n", "latin1");
  writeFileSync(file, latin);
  await expect(edit(["model"], "a/2")).rejects.toMatchObject({
    code: "config.invalid",
    message: expect.stringMatching(/guildhall\.yaml:2:17: the file is not written in UTF-8/),
  });
  expect(readFileSync(file)).toEqual(latin);
});

test("what a person saves in the meantime is not overwritten: the edit is made again on top of it", async () => {
  writeFileSync(file, "model: a/1\n");
  let saved = false;
  await editConfig({ home }, {}, () => {
    if (!saved) writeFileSync(file, "# by hand\nmodel: a/1\n");
    saved = true;
    return set(["model"], "a/2");
  });
  expect(text()).toBe("# by hand\nmodel: a/2\n");
});

test("somebody who never stops writing wins, and the edit says so", async () => {
  let count = 0;
  const never = editConfig({ home }, {}, () => {
    writeFileSync(file, `# ${count++}\n`);
    return set(["model"], "a/2");
  });
  await expect(never).rejects.toMatchObject({ code: "config.changed" });
  expect(text()).toBe(`# ${count - 1}\n`);
  expect(existsSync(join(home, ".guildhall.yaml.new"))).toBe(false);
});

test("a link is followed: the file it names is changed, with its backup beside it", async () => {
  const elsewhere = join(home, "elsewhere");
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, "real.yaml"), "model: a/1\n");
  symlinkSync(join(elsewhere, "real.yaml"), file);
  const { backup } = await edit(["model"], "a/2");
  expect(readlinkSync(file)).toBe(join(elsewhere, "real.yaml"));
  expect(readFileSync(join(elsewhere, "real.yaml"), "utf8")).toBe("model: a/2\n");
  expect(backup).toMatch(/elsewhere\/real\.yaml\.bak-/);
});

test("many at once in one process: each finds what the others have written", async () => {
  await Promise.all(Array.from({ length: 8 }, (_, index) => edit(["identities", `p${index}`], [`telegram:${index}`])));
  expect(text().match(/p\d: /g)).toHaveLength(8);
});

test("what a dead edit left behind is in nobody's way", async () => {
  writeFileSync(file, "model: a/1\n");
  writeFileSync(join(home, ".guildhall.yaml.new"), "half a fi");
  await edit(["model"], "a/2");
  expect(text()).toBe("model: a/2\n");
  expect(existsSync(join(home, ".guildhall.yaml.new"))).toBe(false);
});

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: names are what this is about
test("${NAME} stays as it is written", async () => {
  writeFileSync(file, "channels: { telegram: { token: ${TOKEN}, allow: [] } }\n");
  await editConfig({ home }, { TOKEN: "very-secret" }, () => set(["model"], "a/2"));
  expect(text()).toBe("channels: { telegram: { token: ${TOKEN}, allow: [] } }\nmodel: a/2\n");
});
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: see above
