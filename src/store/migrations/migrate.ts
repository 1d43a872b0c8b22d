import { sha256 } from "../../kernel/canonical-json.ts";
import type { ReachedPoint } from "../../kernel/crash-points.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Log } from "../../kernel/log.ts";
import type { Engine, Reads, Tx } from "../engine.ts";
import { code } from "../sql.ts";
import { groundFloor } from "./001-ground-floor.ts";
import { sessions } from "./002-sessions.ts";
import { access } from "./003-access.ts";
import { pools } from "./004-pools.ts";
import { claims } from "./005-claims.ts";
import { mailbox } from "./006-mailbox.ts";
import { agreements } from "./007-agreements.ts";
import { guests } from "./008-guests.ts";
import { tenants } from "./009-tenants.ts";
import { conversations } from "./010-conversations.ts";
import { journal } from "./011-journal.ts";
import { usage } from "./012-usage.ts";
import { memory } from "./013-memory.ts";
import { mailLabels } from "./014-mail-labels.ts";
import { mcpPins } from "./015-mcp-pins.ts";
import { turnContexts } from "./016-turn-contexts.ts";
import { toolOffers } from "./017-tool-offers.ts";
import { tasks } from "./018-tasks.ts";
import { taskSearch } from "./019-task-search.ts";
import { a2a } from "./020-a2a.ts";
import { schedules } from "./021-schedules.ts";
import { delegation } from "./022-delegation.ts";
import { channels } from "./023-channels.ts";
import { files } from "./024-files.ts";
import { ownerChats } from "./025-owner-chats.ts";
import { nodes } from "./026-nodes.ts";
import { longConversations } from "./027-long-conversations.ts";
import { newestFirst } from "./028-newest-first.ts";
import { type Applied, readApplied, refuseNewer, refuseUnlessAlone, saysWhatIsAdditive, untilAlone } from "./beside-others.ts";
import type { Migration } from "./migration.ts";

/** What takes so long is told. */
const LONG_MS = 2_000;

export const MIGRATIONS: readonly Migration[] = [
  groundFloor,
  sessions,
  access,
  pools,
  claims,
  mailbox,
  agreements,
  guests,
  tenants,
  conversations,
  journal,
  usage,
  memory,
  mailLabels,
  mcpPins,
  turnContexts,
  toolOffers,
  tasks,
  taskSearch,
  a2a,
  schedules,
  delegation,
  channels,
  files,
  ownerChats,
  nodes,
  longConversations,
  newestFirst,
];

/**
 * Brings the schema up to this program, one statement and its record in one transaction: stopped anywhere, it goes on with the
 * next statement. Nodes that start together take turns. An empty database has no rows that a long transaction could keep from anybody: there
 * the statements of a migration go together, which takes a third of the time. Answers the schema of the database, which may be a newer one.
 */
export async function migrate(
  engine: Engine,
  reached: ReachedPoint,
  migrations: readonly Migration[] = MIGRATIONS,
  log?: Log,
): Promise<number> {
  await makeTable(engine);
  const applied = await readApplied(engine.reads, engine.dialect.name);
  const theirs = refuseNewer(applied, migrations);
  const isEmpty = applied.length === 0;
  for (const migration of migrations) {
    const statements = migration.statements.map((statement, index): Statement => {
      const text = typeof statement === "string" ? statement : statement[engine.dialect.name];
      return { migration, index, text, checksum: sha256(text ?? "") };
    });
    const missing = statements.filter(({ index, checksum }) => {
      const known = applied.find((row) => row.version === migration.version && row.statement === index);
      if (known) refuseChanged(known, checksum);
      return !known;
    });
    const isAlone = missing.length > 0 && !isEmpty && !migration.additive;
    if (isAlone) await untilAlone(engine, migration, async () => (await readVersion(engine.reads, migration)).length === statements.length);
    const parts = isEmpty ? [missing] : missing.map((statement) => [statement]);
    for (const part of parts) {
      if (part.length === 0) continue;
      const rest = isEmpty ? part : await withoutIndexes(engine, part, log);
      await engine.transact(`migrate ${migration.version}.${part[0]?.index}`, (tx) => apply(engine, tx, rest, isAlone), "locked");
      for (const _statement of part) reached("store.migrate.statement-done");
    }
  }
  return Math.max(theirs, migrations.at(-1)?.version ?? 0);
}

interface Statement {
  readonly migration: Migration;
  readonly index: number;
  /** Null: there is nothing to do on this database. */
  readonly text: string | null;
  readonly checksum: string;
}

/** What is left of them once their indexes are there: those are made by themselves, where the database can do so while others write. */
async function withoutIndexes(engine: Engine, statements: readonly Statement[], log: Log | undefined): Promise<Statement[]> {
  const rest: Statement[] = [];
  for (const statement of statements) {
    const { migration, index, text } = statement;
    const name = /^create (?:unique )?index (\w+) on /.exec(text ?? "")?.[1];
    if (text === null || name === undefined || !engine.makeIndex) {
      rest.push(statement);
      continue;
    }
    const isDone = async (): Promise<boolean> => (await readVersion(engine.reads, migration)).some((done) => done.statement === index);
    const late = setTimeout(() => log?.info("an index is being made; this node starts when it is there", { index: name }), LONG_MS);
    await engine.makeIndex({ name, statement: text, isDone }).finally(() => clearTimeout(late));
    rest.push({ ...statement, text: null });
  }
  return rest;
}

/** A node that has just joined asks once more: what has come between its own look and its joining could not know of it. */
export async function confirmSchema(engine: Engine): Promise<void> {
  await engine.transact(
    "confirm schema",
    async (tx) => {
      await engine.dialect.lockMigrations(tx);
      refuseNewer(await readApplied(tx, engine.dialect.name), MIGRATIONS);
    },
    "locked",
  );
}

async function apply(engine: Engine, tx: Tx, statements: readonly Statement[], isAlone: boolean): Promise<void> {
  await engine.dialect.lockMigrations(tx);
  const { migration } = statements[0] as Statement;
  const { version, name, additive } = migration;
  const done = await readVersion(tx, migration);
  // What another has made since is not waited for: that one may have joined by now.
  const isMissing = statements.some(({ index }) => !done.some(({ statement }) => statement === index));
  if (isAlone && isMissing) await refuseUnlessAlone(engine, tx, migration);
  for (const { index, text, checksum } of statements) {
    const known = done.find(({ statement }) => statement === index);
    if (known) {
      refuseChanged(known, checksum);
      continue;
    }
    if (text !== null) await tx.run`${code(text)}`;
    await tx.run`insert into migrations (version, statement, name, checksum, at, is_additive)
      values (${version}, ${index}, ${name}, ${checksum}, cast(${Date.now()} as bigint), ${additive ? 1 : 0})`;
  }
}

function readVersion(reads: Reads, { version }: Migration): Promise<Applied[]> {
  return reads.all<Applied>`select version, statement, checksum, is_additive from migrations where version = ${version}`;
}

async function makeTable(engine: Engine): Promise<void> {
  if (await saysWhatIsAdditive(engine.reads, engine.dialect.name)) return;
  await engine.transact(
    "migrations table",
    async (tx) => {
      await engine.dialect.lockMigrations(tx);
      await tx.run`create table if not exists migrations (version integer not null, statement integer not null, name text not null,
        checksum text not null, at bigint not null, primary key (version, statement))`;
      if (!(await saysWhatIsAdditive(tx, engine.dialect.name)))
        await tx.run`alter table migrations add column is_additive integer not null default 0`;
    },
    "locked",
  );
}

function refuseChanged(known: Applied, checksum: string): void {
  if (known.checksum === checksum) return;
  throw new Failure("store.changed_schema", `schema ${known.version}, statement ${known.statement} was made by a different build`);
}
