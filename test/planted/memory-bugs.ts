import type { PlantedBug } from "./bugs.ts";

const STANDPOINT = "src/records/memory/standpoint.ts";
const MEMORY = "src/records/memory/memory.ts";
const RECALL = "src/abilities/tools/memory/recall.ts";
const FETCH = "src/abilities/tools/web/guarded-fetch.ts";
const URLS = "src/abilities/tools/web/public-url.ts";
const onSqlite = { tests: ["test/contract/memory.test.ts"], filter: "SQLite" };
const ssrf = { tests: ["test/security/ssrf.test.ts"] };
const web = { tests: ["test/contract/web-tools.test.ts"] };

/** Bugs in what agents remember, and in how they reach the web. */
export const MEMORY_BUGS: readonly PlantedBug[] = [
  {
    name: "what was said in private is found in groups",
    file: STANDPOINT,
    from: 'shared: ["all"],',
    to: 'shared: ["all", "private"],',
    ...onSqlite,
  },
  {
    name: "everybody who writes in private finds what anybody said in private",
    file: STANDPOINT,
    from: 'if (persons === "all" && scope === "agent")',
    to: 'if (scope === "agent")',
    ...onSqlite,
  },
  {
    name: "memory_scope is for the file alone",
    file: STANDPOINT,
    from: 'if (scope === "agent") return [];\n  return [...',
    to: "if (scope.length > 0) return [];\n  return [...",
    ...onSqlite,
  },
  {
    name: "notes are counted before they are saved, not while",
    file: MEMORY,
    from: "where memory_counts.notes < ${maxNotes} and memory_counts.pinned_characters",
    to: "where memory_counts.notes < ${maxNotes} * 1000 and memory_counts.pinned_characters",
    ...onSqlite,
  },
  {
    name: "pinned notes fill the prompt",
    file: MEMORY,
    from: "memory_counts.pinned_characters + excluded.pinned_characters <= ${maxPinned} returning",
    to: "memory_counts.pinned_characters + excluded.pinned_characters <= ${maxPinned} * 1000 returning",
    ...onSqlite,
  },
  {
    name: "a forgotten note keeps its words",
    file: MEMORY,
    from: "update memories set body = '', hash = '', forgotten_at = now_ms()",
    to: "update memories set hash = '', forgotten_at = now_ms()",
    ...onSqlite,
  },
  {
    name: "a note that was forgotten twice makes room for two",
    file: MEMORY,
    from: "const mine = await tx.get<{ pinned: number }>`update memories set body = '', hash = '', forgotten_at = now_ms()\n      where id = ${found.id} and forgotten_at is null returning pinned`;",
    to: "const mine = await tx.get<{ pinned: number }>`update memories set body = '', hash = '', forgotten_at = now_ms()\n      where id = ${found.id} returning pinned`;",
    tests: ["test/contract/memory.test.ts"],
    filter: "of two who forget",
  },
  {
    name: "an agent reads the notes of others by their ids",
    file: "src/records/memory/note-rows.ts",
    from: "and forgotten_at is null and ${visible} order by id limit 2",
    to: "and forgotten_at is null order by id limit 2",
    ...onSqlite,
  },
  {
    name: "whoever is denied memory is told of it all the same",
    file: RECALL,
    from: "if (!from.mayRecall) return NOTHING;",
    to: "",
    ...onSqlite,
  },
  {
    name: "what is recalled brings no label",
    file: RECALL,
    from: "[...always, ...now].flatMap((note) => note.labels)",
    to: "always.flatMap((note) => note.labels)",
    ...onSqlite,
  },
  {
    name: "a page gets its words pinned",
    file: "src/abilities/tools/memory/memory-tools.ts",
    from: 'if (labels.length > 0 && (pin || whom === "everyone")) throw',
    to: 'if (labels.length > 1 && (pin || whom === "everyone")) throw',
    ...onSqlite,
  },
  {
    name: "past sessions are those of everybody who wrote in private",
    file: "src/records/sessions/sessions.ts",
    from: "and session_key not like '%:dm:%' and session_key not like '%:peer:%'",
    to: "or session_key like '%:dm:%'",
    ...onSqlite,
  },
  {
    name: "a redirect is followed without a look",
    file: FETCH,
    from: "next = checkedUrl(answer.location, request.privateHosts, next.url);",
    to: 'next = { ...next, url: new URL(answer.location, next.url), host: new URL(answer.location, next.url).hostname.replace(/^\\[|\\]$/g, "") };',
    ...ssrf,
  },
  {
    name: "one public address among several is enough",
    file: FETCH,
    from: "found.find((address) => !isPublicAddress(address))",
    to: "found.slice(0, 1).find((address) => !isPublicAddress(address))",
    ...ssrf,
  },
  {
    name: "a name is looked up again for the connection",
    file: FETCH,
    from: "lookup: (_name, options, done) => {",
    to: "lookup: async (_name, options, done) => {\n      address = (await systemResolve(_name).catch(() => [address]))[0] ?? address;",
    tests: ["test/security/ssrf.test.ts"],
    filter: "resolver says",
  },
  {
    name: "addresses may be written as the parser likes",
    file: URLS,
    from: 'authority !== null && authority.replace(/:\\d*$/, "") !== host',
    to: 'authority === null && host === ""',
    ...ssrf,
  },
  {
    name: "a user name in an address is nobody's business",
    file: URLS,
    from: 'url.username !== "" || url.password !== "" || authority?.includes("@")',
    to: 'url.password !== ""',
    ...ssrf,
  },
  {
    name: "an exception for a port is one for the host",
    file: URLS,
    from: "const names = [host, shown, `${shown}:${port}`];",
    to: "const names = [host, shown, `${shown}:${port}`, ...privateHosts.filter((one) => one.startsWith(`${shown}:`))];",
    ...ssrf,
  },
  {
    name: "a body is as large as its sender likes",
    file: "src/abilities/tools/web/bounded-body.ts",
    from: "cut = true;\n        break;",
    to: "cut = true;",
    ...web,
    filter: "does not end",
  },
  {
    name: "pages are read where everybody waits",
    file: "src/abilities/tools/web/read-page-aside.ts",
    from: "return await readAside(page, signal);",
    to: 'return (await import("./read-page.ts")).readPage(Buffer.from(page.bytes).toString(), page.url);',
    ...web,
    filter: "hostile",
  },
  {
    name: "the key of a search provider goes wherever it redirects to",
    file: FETCH,
    from: "next.url.origin === first.url.origin ? request.headers : {}",
    to: "next.url.origin !== first.url.host ? request.headers : {}",
    ...web,
    filter: "whoever it redirects to",
  },
  {
    name: "words of the sender in a failure are taken for our own",
    file: "src/abilities/tools/web/web-fetch.ts",
    from: 'failed: true, labels: ["external"] };\n      }',
    to: "failed: true };\n      }",
    ...web,
    filter: "words of the sender",
  },
  {
    name: "a note that is there already is not pinned, though the model is told so",
    file: MEMORY,
    from: "if (same && (!pinned || same.pinned === 1))",
    to: "if (same)",
    ...onSqlite,
  },
  {
    name: "a note of a turn with words from outside is pinned by saying it again",
    file: MEMORY,
    from: `labels in ('', \${labels.join(" ")}) and`,
    to: `labels <> \${labels.join(" ")} || '-' and`,
    ...onSqlite,
  },
];
