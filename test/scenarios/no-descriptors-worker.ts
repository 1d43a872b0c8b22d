// Opens files until no more can be opened, then does what needs a process. Run with few descriptors, in a process group of its own.
import { closeSync, openSync } from "node:fs";
import { ChildTransport } from "../../src/abilities/tools/mcp/child-transport.ts";
import { PageReader } from "../../src/abilities/tools/web/read-page-aside.ts";
import { KeptOutput } from "../../src/records/workspaces/sandbox/kept-output.ts";
import { Program } from "../../src/records/workspaces/sandbox/program.ts";
import { parseYamlAside } from "../../src/settings/parse-aside.ts";

const { signal } = new AbortController();
const env = { PATH: "/usr/bin:/bin" };
const limits = { outputBytes: 1_000 } as ConstructorParameters<typeof Program>[1];
const tried: Readonly<Record<string, () => Promise<unknown>>> = {
  page: () => new PageReader().read({ bytes: Buffer.from("<p>words</p>"), contentType: "text/html", url: "http://a.example/" }, signal),
  config: () => parseYamlAside({ text: "agents: {}", file: "guildhall.yaml", names: {} }),
  server: () => new ChildTransport({ command: "cat", args: [], env, cwd: "/", heard: () => {} }, JSON.parse).start(),
  program: async () => {
    // The one that it opens itself; those for the streams are missing.
    closeSync(open.pop() as number);
    const how = { file: "true", args: [], env, pipes: [], tells: false, inherited: [] };
    await new Program(how, limits, new KeptOutput(100, 100)).over;
  },
};

const open: number[] = [];
const fill = (): void => {
  try {
    for (;;) open.push(openSync("/dev/null", "r"));
  } catch {
    // No more.
  }
};
fill();
for (const [name, attempt] of Object.entries(tried)) {
  const outcome = await attempt().then(
    () => "done",
    (error: { code?: string }) => String(error.code),
  );
  process.stdout.write(`${name}: ${outcome}\n`);
}
for (const handle of open.splice(0)) closeSync(handle);
await (tried.page as () => Promise<unknown>)();
process.stdout.write("page: done\n");
process.exit(0);
