// biome-ignore-all lint/suspicious/noTemplateCurlyInString: names in the config are written like this
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { Home, type RunningDaemon } from "../scenarios/guildhall.ts";
import { migratedPostgresPlace } from "../stores.ts";

/** With everything that has to be written otherwise in JSON and in URLs. */
const CANARY = 'canary "one" /söcret\\ 4f1d';
const LITERAL = "canary-two-literal-93ab";
const BROKEN = "canary-three-broken-agent-77e0";
const CANARIES = [
  CANARY,
  JSON.stringify(CANARY).slice(1, -1),
  encodeURIComponent(CANARY),
  decodeURI(encodeURIComponent(CANARY)),
  LITERAL,
  BROKEN,
];

const CONFIG = `
agents:
  main:
    default: true
    personality: Never say ${CANARY}.
  owner:
    env: { TOKEN: \${CANARY}, LITERAL: ${LITERAL} }
  broken:
    env: { TOKEN: \${BROKEN} }
    modle: x
    state: ${LITERAL}
pools:
  house: { readers: ["*"], writers: ["*"] }
`;

async function started(kind: string): Promise<{ home: Home; daemon: RunningDaemon }> {
  const place = kind === "PostgreSQL" ? await migratedPostgresPlace() : undefined;
  const home = new Home(`${place ? `store: ${place.location}` : ""}${CONFIG}`);
  onTestFinished(async () => {
    await home.remove();
    await place?.remove();
  });
  writeFileSync(join(home.path, ".env"), `CANARY='${CANARY}'\nBROKEN=${BROKEN}\n`, { mode: 0o600 });
  return { home, daemon: await home.start() };
}

function clean(where: string, text: string): void {
  for (const canary of CANARIES) expect(text.includes(canary), `${where} shows ${canary}:\n${text.slice(0, 2_000)}`).toBe(false);
}

describe.each(["SQLite", "PostgreSQL"])("secrets on %s", (kind) => {
  test("P6 a planted secret of an agent appears in no prompt, entry, mail, proposal, log, error, event or dump", async () => {
    const { home, daemon } = await started(kind);
    const say = `look: ${CANARY}, ${LITERAL}, ${BROKEN}`;
    const post = (path: string, body: unknown, token = daemon.token, method = "POST"): Promise<Response> =>
      daemon.fetch(path, { method, body: JSON.stringify(body), headers: { authorization: `Bearer ${token}` } });
    const answer = async (where: string, response: Response | Promise<Response>): Promise<string> => {
      const text = await (await response).text();
      clean(where, text);
      return text;
    };

    const { token } = (await (await post("/api/tokens", { scope: "agent:main" })).json()) as { token: string };
    const entry = `/api/pools/house/entries/${encodeURIComponent(`key of ${LITERAL}`)}`;
    await answer("an entry", post(entry, { value: { [LITERAL]: [say] }, note: say }, token, "PUT"));
    const kept = JSON.parse(
      await answer("the entry as it is read", daemon.fetch("/api/pools/house/entries/key%20of%20%5Bsecret%20LITERAL%5D")),
    );
    expect(kept.value).toEqual({ "[secret LITERAL]": ["look: [secret CANARY], [secret LITERAL], [secret BROKEN]"] });

    const retraction = { version: 1, reason: say, idempotency_key: "once" };
    const retracted = await post(`${entry}/retract`, retraction, token);
    expect(retracted.status).toBe(200);
    await answer("a retraction that is done once", retracted);

    await answer("mail", post("/api/mail", { to: "main", type: "note", content: { text: say } }, token));
    const received = await answer("received mail", post("/api/mail/receive", { max: 10, visibility_ms: 1_000 }, token));
    expect(received).toContain("[secret CANARY]");

    const proposal = { subject: say, electorate: ["main"], rule: "all", deadline_ms: 60_000, writes: [] };
    const opened = JSON.parse(await answer("a proposal", post("/api/proposals", proposal, token)));
    expect(opened.subject).toContain("[secret CANARY]");

    const sent = await daemon.send({ id: "1", text: say, peer: LITERAL });
    const run = await daemon.finished(sent.runId);
    clean("a run", JSON.stringify([sent, run]));
    // The offline model repeats what it is told: what it was told held the names alone.
    expect(run.reply?.text).toContain("[secret CANARY], [secret LITERAL], [secret BROKEN]");
    await answer("a running text", daemon.fetch(`/api/runs/${sent.runId}/live`));

    await answer("an error", daemon.fetch(`/api/runs/${encodeURIComponent(CANARY)}`));
    await answer("a malformed request", post("/api/messages", { id: 1, [CANARY]: say }));
    await answer("an unknown path", daemon.fetch(`/api/${encodeURIComponent(CANARY)}`));
    expect(await answer("an unknown path", daemon.fetch(`/api/${LITERAL}`))).toContain("[secret LITERAL]");
    await answer("a claim", post("/api/claims", { resource: LITERAL, ttl_ms: 1_000 }, token));
    await answer("agents", daemon.fetch("/api/agents"));
    await answer("one agent", daemon.fetch("/api/agents/owner"));

    const rpc = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "context_write", arguments: { key: "k", value: say } } };
    const accept = "application/json, text/event-stream";
    const headers = { authorization: `Bearer ${token}`, accept, "content-type": "application/json" };
    await answer("MCP", daemon.fetch("/mcp", { method: "POST", body: JSON.stringify(rpc), headers }));

    const events = await daemon.eventsUntil(sent.runId, "turn.completed");
    clean("events", JSON.stringify(events));

    const backup = join(home.path, "backup.gz");
    const told = await home.run(["backup", backup]);
    clean("the command's words", told.stdout + told.stderr);
    const bytes = readFileSync(backup);
    const dump = bytes[0] === 0x1f ? gunzipSync(bytes).toString("utf8") : bytes.toString("utf8");
    expect(dump).toContain("[secret ");
    expect(dump).toContain("agents:");
    clean("a dump", dump);
    clean("a dump, read as JSON", unescaped(dump));

    const checked = await home.run(["config", "check"]);
    clean("config check", checked.stdout + checked.stderr);
    const explained = await home.run(["config", "explain", "agents.owner"]);
    clean("config explain", explained.stdout + explained.stderr);
    const { stdout, stderr } = await daemon.kill("SIGTERM");
    expect(stderr).toContain("modle");
    expect(stderr).toContain("a secret is written in the config itself");
    clean("the log", stdout + stderr);
  });
});

/** Texts inside texts: what is escaped twice in a dump is found as well. */
function unescaped(text: string): string {
  return text.replaceAll("\\\\", "\\").replaceAll('\\"', '"');
}
