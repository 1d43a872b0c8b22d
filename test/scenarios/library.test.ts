import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createGuildhall, defineTool, type Guildhall, GuildhallClient, type GuildhallOptions } from "../../src/library/index.ts";

const CHECKOUT = new URL("../..", import.meta.url).pathname;
const ENTRY = {
  main: "./dist/app/index.js",
  types: "./dist/types/library/index.d.ts",
  exports: { ".": { types: "./dist/types/library/index.d.ts", default: "./dist/app/index.js" }, "./package.json": "./package.json" },
};
const manifest = JSON.parse(readFileSync(join(CHECKOUT, "package.json"), "utf8")) as object;

describe("the package, in a program of somebody else", () => {
  const folder = mkdtempSync(join(tmpdir(), "guildhall-library-"));
  const program = join(folder, "program");
  const pages = [...readFileSync(join(CHECKOUT, "docs/library.md"), "utf8").matchAll(/```ts\n([\s\S]+?)```\n```text\n([\s\S]+?)```/g)];

  /** What `npm install guildhall` would give, with nothing of the source beside it. */
  beforeAll(() => {
    const installed = join(folder, "guildhall");
    execFileSync(process.execPath, [join(CHECKOUT, "tools/build.mjs"), join(installed, "dist")], { stdio: "ignore" });
    cpSync(join(CHECKOUT, "bin"), join(installed, "bin"), { recursive: true });
    writeFileSync(join(installed, "package.json"), JSON.stringify({ ...manifest, ...ENTRY }));
    symlinkSync(join(CHECKOUT, "node_modules"), join(installed, "node_modules"));
    mkdirSync(join(program, "node_modules"), { recursive: true });
    symlinkSync(installed, join(program, "node_modules/guildhall"));
    for (const name of ["zod", "@types"]) symlinkSync(join(CHECKOUT, "node_modules", name), join(program, "node_modules", name));
    writeFileSync(join(program, "package.json"), JSON.stringify({ name: "program", private: true, type: "module" }));
    const compilerOptions = {
      target: "es2024",
      lib: ["es2024", "esnext.disposable"],
      module: "nodenext",
      strict: true,
      noEmit: true,
      types: ["node"],
    };
    writeFileSync(join(program, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
    for (const [index, [, code]] of pages.entries()) writeFileSync(join(program, `page-${index}.ts`), `${code}\nexport {};\n`);
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const check = (): Promise<string> =>
    promisify(execFile)(process.execPath, [join(CHECKOUT, "node_modules/typescript/bin/tsc"), "-p", program]).then(
      () => "",
      (error: { stdout: string }) => error.stdout,
    );

  test("says where its code and its types are", () => {
    expect(manifest).toMatchObject(ENTRY);
  });

  test("has types that the programs of the guide pass, and a mistaken one does not", async () => {
    expect(await check()).toBe("");
    const wrong = join(program, "wrong.ts");
    writeFileSync(
      wrong,
      `import { createGuildhall, defineTool, z } from "guildhall";
       defineTool({ name: "t", description: "d", parameters: z.object({ n: z.number() }), run: ({ n }) => n.length });
       const house = await createGuildhall({ config: { agents: { main: { max_steps: "many" } } }, channels: [] });
       const reply: number = await house.ask("main", "hello");`,
    );
    const said = await check();
    rmSync(wrong);
    for (const part of ["Property 'length'", "wrong.ts(3,", "'string' is not assignable to type 'number'"]) expect(said).toContain(part);
  }, 60_000);

  test("runs the programs of the guide, and they print what it says", async () => {
    expect(pages.length).toBeGreaterThanOrEqual(3);
    for (const [index, [, , printed]] of pages.entries()) {
      const { stdout } = await promisify(execFile)(process.execPath, [`page-${index}.ts`], { cwd: program });
      expect(stdout, `page ${index}`).toBe(printed);
      rmSync(join(program, "home"), { recursive: true, force: true });
    }
  }, 60_000);
});

describe("createGuildhall", () => {
  async function started(options: GuildhallOptions): Promise<Guildhall> {
    const home = mkdtempSync(join(tmpdir(), "guildhall-embedded-"));
    const house = await createGuildhall({ home, log: "error", ...options });
    onTestFinished(async () => {
      await house.stop();
      rmSync(home, { recursive: true, force: true });
    });
    return house;
  }
  const refused = async (options: object): Promise<unknown> => {
    const home = mkdtempSync(join(tmpdir(), "guildhall-refused-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    return createGuildhall({ home, log: "error", ...options }).then(
      async (house) => {
        await house.stop();
        return "started";
      },
      (error: unknown) => error,
    );
  };
  const tool = (name: string, more: object = {}) =>
    defineTool({ name, description: "Does it.", parameters: z.object({ n: z.number().default(1) }), run: ({ n }) => ({ n }), ...more });

  test("answers, piece by piece too, and keeps the conversations of people apart", async () => {
    const house = await started({ config: { agents: { main: {}, coder: {} } } });
    expect(house.agents).toEqual(["main", "coder"]);
    const whole = await house.ask("coder", "hello", { from: "ann" });
    let pieces = "";
    for await (const piece of house.stream("coder", "hello", { from: "bob" })) pieces += piece;
    expect(pieces).toBe(whole);
    await house.ask("coder", "hello", { from: "ann", conversation: "other" });
    const { sessions } = await house.client.sessions.list();
    expect(sessions).toHaveLength(3);
  });

  test("gives two speakers two conversations, whatever they call them or themselves", async () => {
    const house = await started({ config: { agents: { main: {} } } });
    const asked = [{ from: "ann" }, { from: "ann", conversation: "one" }, { from: "bob", conversation: "one" }, { from: "ann/one" }];
    for (const options of [...asked, ...asked]) await house.ask("main", "hello", options);
    const { sessions } = await house.client.sessions.list();
    expect(sessions).toHaveLength(asked.length);
    for (const { key } of sessions) expect(key).toContain(":library:dm:");
  });

  test("gives a program every part of the API", () => {
    const files = readdirSync(join(CHECKOUT, "src/client")).map((name) => readFileSync(join(CHECKOUT, "src/client", name), "utf8"));
    const parts = files.flatMap((text) => /^export class (\w+Client) /m.exec(text)?.[1] ?? []);
    const given = Object.values(new GuildhallClient("http://127.0.0.1:1", "token")).map((part: object) => part.constructor.name);
    expect(given.sort()).toEqual(parts.sort());
  });

  test("lets agents call a program's tools by the rules, with the context of the call", async () => {
    const seen: unknown[] = [];
    const house = await started({
      config: { agents: { main: { tools: ["count"] }, other: { tools: "messaging" } } },
      tools: [
        tool("count", {
          effect: "pure",
          run: (args: unknown, { agent, run, key }: { agent: string; run: string; key: string }) => {
            seen.push({ args, agent });
            expect(key).toContain(run);
            return "three";
          },
        }),
      ],
    });
    expect(await house.ask("main", 'call count {"n": 3}')).toContain("three");
    expect(await house.ask("main", 'call count {"n": "x"}')).toContain("bad_arguments");
    expect(await house.ask("other", 'call count {"n": 3}')).toContain("tool.denied");
    expect(seen).toEqual([{ args: { n: 3 }, agent: "main" }]);
  });

  test("refuses tools that take a built-in's name, take each other's, or are none", async () => {
    for (const name of ["terminal", "termina1", "web_extract", "mcp__a__b", "Weather", ""])
      expect(await refused({ tools: [tool(name)] }), name).toMatchObject({ name: "ClientError", code: "usage.wrong" });
    expect(await refused({ tools: [tool("same"), tool("same")] })).toMatchObject({ code: "usage.wrong" });
    expect(await refused({ tools: [tool("t", { parameters: z.string() })] })).toMatchObject({ code: "usage.wrong" });
    expect(await refused({ tools: [tool("t", { run: undefined })] })).toMatchObject({ code: "usage.wrong" });
    expect(await refused({ tools: [tool("t", { effect: "safe" })] })).toMatchObject({ code: "usage.wrong" });
  });

  test("refuses options and tools of a wrong kind, with a code", async () => {
    const wrong = [
      { config: null },
      { config: 5 },
      { config: "" },
      { home: "" },
      { home: 5 },
      { tools: {} },
      { tools: [null] },
      { host: "" },
      { port: "80" },
      { port: 99_999 },
      { log: "verbose" },
      { tools: [tool("t", { timeoutMs: 0 })] },
      { tools: [tool("t", { timeoutMs: Number.POSITIVE_INFINITY })] },
      { tools: [tool("t", { timeout: 5 })] },
      { tools: [tool("t", { consequential: "no" })] },
    ];
    for (const options of wrong) expect(await refused(options), JSON.stringify(options)).toMatchObject({ code: "usage.wrong" });
    await expect(createGuildhall(null as never)).rejects.toMatchObject({ code: "usage.wrong" });
  });

  test("takes what a program's tool does wrong for the tool's failure, and shows nothing whose labels it cannot read", async () => {
    const odd = (name: string, answer: unknown) => tool(name, { effect: "pure", run: () => answer });
    const house = await started({
      config: { agents: { main: {} } },
      tools: [
        odd("one_label", { output: "canary", labels: "external" }),
        odd("other_label", { output: "canary", labels: ["external ", "nonsense"] }),
        odd("odd_picture", { output: "canary", images: [{ mediaType: 5 }] }),
        tool("slow_check", { parameters: z.object({ n: z.number().refine(async () => true) }) }),
      ],
    });
    for (const name of ["one_label", "other_label", "odd_picture"]) {
      const answer = await house.ask("main", `call ${name}`);
      expect(answer).toContain("tool.failed");
      expect(answer).not.toContain("canary");
    }
    expect(await house.ask("main", 'call slow_check {"n": 1}')).toContain("tool.failed");
  });

  test("refuses what it does not know, instead of leaving it out", async () => {
    expect(await refused({ chanels: [] })).toMatchObject({ code: "usage.wrong", message: expect.stringContaining("chanels") });
    expect(await refused({ config: { agents: { main: { colour: "red" } } } })).toMatchObject({
      code: "config.invalid",
      message: expect.stringMatching(/^config\.agents\.main\.colour: (?!.*yaml)/),
    });
    expect(await refused({ config: { agents: { main: { tools: ["conut"] } } }, tools: [tool("count")] })).toMatchObject({
      code: "config.invalid",
    });
  });

  test("keeps to the config it was given: nothing writes a file, and the next start may have another", async () => {
    const home = mkdtempSync(join(tmpdir(), "guildhall-embedded-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    writeFileSync(join(home, "guildhall.yaml"), "agents: { file: {} }\n");
    const first = await createGuildhall({ home, log: "error", config: { agents: { one: { env: { TOKEN: "a-secret-of-one" } } } } });
    expect(first.agents).toEqual(["one"]);
    await expect(first.client.agents.setState("one", "pause")).rejects.toMatchObject({ code: "config.unwritable" });
    await first.stop();
    const second = await createGuildhall({ home, log: "error", config: { agents: { two: {} } } });
    const { current } = await second.client.agents.revisions();
    await second.stop();
    expect([second.agents, current.number]).toEqual([["two"], 2]);
    const third = await createGuildhall({ home, log: "error", port: 0 });
    await third.stop();
    expect(third.agents).toEqual(["file"]);
    expect(readFileSync(join(home, "guildhall.yaml"), "utf8")).toBe("agents: { file: {} }\n");
  });

  test("stops a turn whose caller gave up while the message was sent", async () => {
    const house = await started({
      config: { agents: { main: {} } },
      tools: [tool("wait", { effect: "pure", run: (_: unknown, { signal }: { signal: AbortSignal }) => once(signal, "abort") })],
    });
    const stop = new AbortController();
    const asking = house.ask("main", "call wait", { signal: stop.signal });
    stop.abort(new Error("no longer wanted"));
    await expect(asking).rejects.toThrow("no longer wanted");
  });

  test("stops a turn whose caller no longer waits", async () => {
    const stop = new AbortController();
    let ended = "";
    const house = await started({
      config: { agents: { main: {} } },
      tools: [
        tool("wait", {
          effect: "pure",
          run: (_: unknown, { signal }: { signal: AbortSignal }) =>
            new Promise((resolve) => {
              signal.addEventListener("abort", () => {
                ended = "ended";
                resolve(ended);
              });
              stop.abort(new Error("no longer wanted"));
            }),
        }),
      ],
    });
    await expect(house.ask("main", "call wait", { signal: stop.signal })).rejects.toThrow("no longer wanted");
    await expect.poll(() => ended).toBe("ended");
  });
});
