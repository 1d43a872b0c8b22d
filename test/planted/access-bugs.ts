import type { PlantedBug } from "./bugs.ts";

const ACCESS = "src/records/access/access.ts";
const ONCE = "src/edges/api/once.ts";
const tokens = { tests: ["test/contract/access.test.ts"] };
const keyed = { tests: ["test/contract/keyed-requests.test.ts"] };
const calls = { tests: ["src/edges/api"] };

/** Bugs in tokens and in the HTTP server. */
export const ACCESS_BUGS: readonly PlantedBug[] = [
  {
    name: "a token is remembered for as long as the daemon runs",
    file: ACCESS,
    from: "performance.now() - recent.readAt < FRESH_MS",
    to: "recent.readAt < FRESH_MS * 1e9",
    ...tokens,
  },
  { name: "revoked tokens go on", file: ACCESS, from: "if (!row || row.revoked_at !== null)", to: "if (!row)", ...tokens },
  {
    name: "open streams do not notice that a token was revoked",
    file: ACCESS,
    from: "where id in ${list(ids)} and revoked_at is null`",
    to: "where id in ${list(ids)}`",
    ...tokens,
  },
  {
    name: "a guest keeps a name that an agent has taken",
    file: "src/records/access/token-scope.ts",
    from: "id.toLowerCase() === name",
    to: "id.toLowerCase() === `${name} `",
    ...tokens,
  },
  { name: "tokens are stored as they are", file: ACCESS, from: "${sha256(secret)}, ${name}", to: "${secret}, ${name}", ...tokens },
  {
    name: "answers are recorded after their effect instead of with it",
    file: "src/edges/api/serve.ts",
    from: "          await record(tx, answer);\n",
    to: "",
    ...keyed,
  },
  { name: "a key belongs to everybody", file: ONCE, from: '["http", caller.kind, caller.name, method', to: '["http", method', ...keyed },
  {
    name: "refusals are kept for a day",
    file: ONCE,
    from: "if (recorded || !isFailure(error",
    to: "if (recorded && !isFailure(error",
    ...keyed,
  },
  {
    name: "secret answers lie in the database",
    file: ONCE,
    from: "if (request.lock === null) return answer;",
    to: "if (request.key) return answer;",
    ...keyed,
  },
  {
    name: "deep JSON is handed on",
    file: "src/kernel/read-json.ts",
    from: "if (++depth > MAX_DEPTH)",
    to: "if (++depth > MAX_DEPTH * 1e9)",
    ...calls,
  },
  {
    name: "any page may call",
    file: "src/edges/api/guards.ts",
    from: "if (origin !== undefined && (",
    to: 'if (origin !== undefined && origin !== "null" && (',
    ...calls,
  },
  {
    name: "a stream whose reader has left before it began goes on for ever",
    file: "src/daemon/listen.ts",
    from: "  if (outgoing.closed) closed();",
    to: "",
    tests: ["src/daemon/listen.test.ts"],
  },
  {
    name: "what an event stream has gathered is gone when it ends",
    file: "src/edges/api/event-stream.ts",
    from: "            flush();\n            controller.close();",
    to: "            controller.close();",
    tests: ["src/edges/api/event-stream.test.ts"],
  },
  {
    name: "event streams are sent whether or not they are read",
    file: "src/edges/api/event-stream.ts",
    from: "(controller.desiredSize ?? 0) > 0 && gathered.length < TOGETHER",
    to: "gathered.length < TOGETHER",
    ...calls,
  },
];
