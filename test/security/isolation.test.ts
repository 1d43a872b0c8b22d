import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type IsolationReport, pairsOf } from "../../src/daemon/doctor/isolation/isolation.ts";
import { PlantedCopy } from "./planted-copy.ts";

const CONFIG = `
personality: The real \${REAL_SECRET}.
channels: { telegram: { token: "\${REAL_SECRET}" } }
pools: { house: { readers: ["*"], writers: [alice] } }
agents:
  alice: { default: true, env: { API_TOKEN: "\${REAL_SECRET}" }, roles: [writer], workspace_scope: chat }
  bob: { roles: [writer], tools: coding, shared_paths: [{ path: ./docs, mode: rw }] }
bindings: [{ agent: bob, telegram: "-100" }]
`;

const VALUES = "src/daemon/doctor/isolation/route-values.ts";

let home: string;
let places: string;
let copy: PlantedCopy;
beforeAll(() => {
  places = mkdtempSync(join(tmpdir(), "guildhall-isolated-"));
  home = join(places, "home");
  mkdirSync(join(home, "docs"), { recursive: true });
  mkdirSync(join(places, "tmp"));
  writeFileSync(join(home, "guildhall.yaml"), CONFIG);
  writeFileSync(join(home, ".env"), "REAL_SECRET=the-operators-real-secret\n");
  chmodSync(join(home, ".env"), 0o600);
  copy = new PlantedCopy();
});
afterAll(() => {
  copy.remove();
  rmSync(places, { recursive: true, force: true });
});

interface Tested {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(args: readonly string[]): Promise<Tested> {
  return new Promise((resolve) => {
    const env = { ...process.env, TMPDIR: join(places, "tmp"), NO_COLOR: "1" };
    const child = spawn(process.execPath, [copy.launcher, "doctor", "--isolation", "--home", home, ...args], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (data) => {
      stdout += data;
    });
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** Kinds and ways of what was not as it should be. */
async function failures(): Promise<{ readonly code: number | null; readonly failed: string[]; readonly report: IsolationReport }> {
  const { code, stdout, stderr } = await run(["--json"]);
  if (!stdout.startsWith("{")) throw new Error(`no report: ${stdout}${stderr}`);
  const report = JSON.parse(stdout) as IsolationReport;
  const wrong = report.pairs.flatMap(({ attempts }) => attempts).filter(({ outcome }) => outcome !== "refused" && outcome !== "own");
  return { code, failed: [...new Set(wrong.map(({ kind, outcome, way }) => `${outcome} ${kind}: ${way}`))], report };
}

describe("the isolation self-test", () => {
  test("holds, tells what was refused, uses nothing real and leaves nothing behind", async () => {
    const before = readdirSync(home, { recursive: true });
    const { code, failed, report } = await failures();
    expect({ code, failed, blind: report.blind }).toEqual({ code: 0, failed: [], blind: [] });
    expect(report.pairs.map(({ attacker, victim }) => `${attacker} → ${victim}`)).toEqual(["alice → bob", "bob → alice"]);
    expect(report.pairs[0]?.attempts.length).toBeGreaterThan(200);
    expect(JSON.stringify(report)).not.toContain("the-operators-real-secret");
    expect(readdirSync(home, { recursive: true })).toEqual(before);
    expect(readdirSync(join(places, "tmp")).filter((name) => name.startsWith("guildhall"))).toEqual([]);
  }, 120_000);

  // In words it stands in the README, which is walked (test/scenarios/readme-walk.test.ts).
  test.runIf(process.env.GUILDHALL_TEST_ALL)(
    "tells in words what was refused, and how",
    async () => {
      const words = await run([]);
      expect(words.code).toBe(0);
      expect(words.stdout).toMatch(/^isolation: holds\nok {4}alice → bob {3}\d+ attempts in vain/);
      expect(words.stdout).toContain("403 workspace.outside");
      expect(words.stdout).toMatch(/^tasks +\d+ .*404 request.not_found/m);
    },
    120_000,
  );

  // Several at a time, each in another room, to save time: what one of them lets through, none of the others could.
  const SPOILED: readonly (readonly (readonly [what: string, expected: RegExp, file: string, from: string, to: string])[])[] = [
    [
      [
        "the jail follows links",
        /leaked files: read through link to the folder/,
        "src/records/workspaces/directory.ts",
        "O_PATH | O_NOFOLLOW : O_RDONLY | O_NOFOLLOW_ANY",
        "O_PATH : O_RDONLY | O_NOFOLLOW_ANY",
      ],
      [
        "everybody sees all sessions",
        /leaked sessions: GET \/api\/sessions\/\{key\}/,
        "src/records/sessions/viewer.ts",
        'return sees.includes("*") ? "all" : [...new Set([caller.name, ...sees])];',
        'return sees.includes("*") || caller.name !== "" ? "all" : [];',
      ],
      [
        "everybody reads every pool",
        /leaked pools: GET \/api\/pools\/\{pool\}\/entries\/\{key\}/,
        "src/records/pools/access.ts",
        'if (caller.kind === "operator" || caller.kind === "reader") return true;',
        'if (caller.kind === "operator" || caller.kind === "agent") return true;',
      ],
      [
        "secrets are not taken out",
        /leaked prompts: what its model is shown/,
        "src/kernel/redact.ts",
        "for (const [name, value] of secrets) this.#secrets.set(value, name);",
        "for (const [name, value] of []) this.#secrets.set(value, name);",
      ],
      [
        "agents see approvals",
        /leaked approvals: GET \/api\/approvals/,
        "src/edges/api/approvals-routes.ts",
        "allow: OVERSEERS,",
        'allow: [...OVERSEERS, "agent"],',
      ],
      [
        "a route is added that nobody thought of",
        /unprobed things: GET \/api\/things\/\{thing\}/,
        "src/edges/api/system-routes.ts",
        '    route({\n      method: "GET",\n      path: "/healthz",',
        '    route({ method: "GET", path: "/api/things/:thing", summary: "New", allow: ["agent"], answers: { 200: z.string() }, handle: async () => ({ status: 200, body: "" }) }),\n    route({\n      method: "GET",\n      path: "/healthz",',
      ],
      [
        "shared folders are not looked at when they are used",
        /leaked files: shared_paths: its workspace, read/,
        "src/records/workspaces/shared-root.ts",
        "if (agents !== undefined && above.includes(agents)",
        'if (agents === "" && above.includes(agents)',
      ],
      [
        "mail is acknowledged by whoever knows its number",
        /accepted mail: POST \/api\/mail\/\{id\}\/ack/,
        "src/records/mailbox/mailbox.ts",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it stands so in the source
        "set state = 'acked', ${this.#settling.ended}\n      where id = ${id} and fence = ${fence} and leased_by = ${caller.name}",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: likewise
        "set state = 'acked', ${this.#settling.ended}\n      where id = ${id} and fence = ${fence}",
      ],
      [
        "an idempotency key is anybody's",
        /leaked idempotency: POST \/api\/mail\/receive/,
        "src/edges/api/once.ts",
        'scope: ["http", caller.kind, caller.name, ',
        'scope: ["http", caller.kind, ',
      ],
    ],
    [
      [
        "hard links are not looked at",
        /leaked files: read hard link/,
        "src/records/workspaces/read-file.ts",
        "entry.stats.nlink === 1n",
        "entry.stats.nlink <= 9n",
      ],
      [
        "everybody sees all runs",
        /leaked runs: GET \/api\/runs\/\{id\}/,
        "src/edges/api/visible-run.ts",
        'caller.kind === "agent" && found.agent !== caller.name',
        'caller.kind === "channel" && found.agent !== caller.name',
      ],
      [
        "everybody reads all mail",
        /leaked mail: GET \/api\/mail\/\{id\}/,
        "src/records/mailbox/mailbox.ts",
        "row.sender === caller.name ||",
        'row.sender !== "" ||',
      ],
      [
        "everybody writes where it may read",
        /accepted pools: PUT .* it may only read/,
        "src/records/pools/access.ts",
        'return caller.kind === "operator" ||',
        'return caller.kind !== "reader" ||',
      ],
      [
        "an MCP session is anybody's",
        /leaked mcp: its session: mail_read/,
        "src/edges/mcp/mcp-sessions.ts",
        "!session || !isSame(session.caller, caller)",
        "!session",
      ],
      [
        "agents follow the ledger",
        /(leaked|accepted) events: /,
        "src/edges/api/event-routes.ts",
        "allow: OVERSEERS,",
        'allow: [...OVERSEERS, "agent"],',
      ],
      [
        "everybody is told which pools there are",
        /leaked pools: GET \/api\/pools$/m,
        "src/records/pools/registry.ts",
        "if (rules && this.isOpenTo(caller, row, rules, row.now)) pools.push",
        "if (rules) pools.push",
      ],
      [
        "what is asked for does not fit, so that nobody looks who asks",
        /unprobed claims: POST \/api\/claims\/renew/,
        VALUES,
        '"POST /api/claims/renew": { bodies: ({ claim }) => [claim] }',
        '"POST /api/claims/renew": { bodies: () => [{}] }',
      ],
    ],
  ];

  // The other half with `npm run test:all`: each takes as long as everything else here.
  const tried = process.env.GUILDHALL_TEST_ALL ? SPOILED : SPOILED.slice(0, 1);
  test.each(tried.map((spoiled) => [spoiled.map(([what]) => what).join("; "), spoiled] as const))(
    "fails when %s",
    async (_what, spoiled) => {
      const undo: (() => void)[] = [];
      try {
        for (const [, , file, from, to] of spoiled) undo.unshift(copy.plant(file, from, to));
        const { code, failed } = await failures();
        for (const [what, expected] of spoiled) expect(failed.join("\n"), what).toMatch(expected);
        expect(code).toBe(1);
      } finally {
        for (const restore of undo) restore();
      }
    },
    60_000,
  );

  test("does not trust attempts by which an agent does not find its own things", async () => {
    const undo = copy.plant(VALUES, "runs: { id: ({ runId }) => [runId] }", 'runs: { id: () => ["0"] }');
    const blind = await failures();
    undo();
    expect([blind.code, blind.failed, blind.report.blind]).toEqual([1, [], ["runs"]]);
  }, 60_000);

  test("that is interrupted leaves nothing behind either", async () => {
    const child = spawn(process.execPath, [copy.launcher, "doctor", "--isolation", "--home", home], {
      env: { ...process.env, TMPDIR: join(places, "tmp") },
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => child.on("close", resolve));
    const scratch = (): string[] => readdirSync(join(places, "tmp")).filter((name) => name.startsWith("guildhall"));
    await expect.poll(scratch, { timeout: 20_000 }).toHaveLength(1);
    child.kill("SIGTERM");
    await ended;
    expect(scratch()).toEqual([]);
  }, 60_000);

  test("takes turns when there are too many pairs: everybody attacks and is attacked equally often", () => {
    const agents = Array.from({ length: 50 }, (_, index) => `a${index}`);
    const pairs = pairsOf(agents);
    expect(pairs).toHaveLength(250);
    for (const side of [0, 1] as const) {
      const counts = Map.groupBy(pairs, (pair) => pair[side]).values();
      expect(new Set(counts.map((all) => all.length))).toEqual(new Set([5]));
    }
    expect(pairsOf(agents.slice(0, 15))).toHaveLength(15 * 14);
    expect(pairsOf(Array.from({ length: 1_000 }, String))).toHaveLength(1_000);
    expect(new Set(pairs.map(String)).size).toBe(pairs.length);
    expect(pairs.some(([attacker, victim]) => attacker === victim)).toBe(false);
    expect(pairsOf(["only"])).toEqual([]);
  });
});
