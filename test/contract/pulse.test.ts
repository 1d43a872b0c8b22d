import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ChoreParts, choresOf } from "../../src/daemon/chores.ts";
import { type Chore, Upkeep } from "../../src/drivers/dispatch/upkeep.ts";
import { HELD_TURNS } from "../../src/records/agents/held-turns.ts";
import { code, type SqlFragment, sql } from "../../src/store/sql.ts";
import type { Store } from "../../src/store/store.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { taskParts } from "../task-parts.ts";
import { quiet } from "../turn-parts.ts";

const NOW = 1_000_000;
const DAY = 86_400_000;
const task = (id: string, more: string, values: string): string =>
  `insert into tasks (id, kind, opened_by, goal, status, root_id, depth, max_depth, chain, spec, created_at${more})
   values ('${id}', 'api', 'x', 'g', 'open', '${id}', 0, 1, '[]', '{}', 1${values})`;
const mail = (wake: number, due: number): string =>
  `insert into mail (id, seq, box, sender, recipient, conversation, type, content, priority, readers, wake, state, fence, attempts, visible_at, due_at,
    expires_at, created_at) values ('m', 1, 'b', 's', 'b', 'c', 'note', '{}', 0, '[]', ${wake}, 'pending', 0, 0, 1, ${due}, ${due}, 1)`;
const FAR = 9_000_000_000_000;

/** For each chore what it does not care about, and what it does. */
const CASES: Readonly<Record<string, readonly [not: string, due: string]>> = {
  "held turns": ["delete from held_turns", "insert into held_turns (work_id, agent, run_id, revision, at) values (1, 'a', 'r', 1, 1)"],
  "drafts of turns that are over": [
    `insert into runs (id, status, address, input, decision, created_at) values ('r', 'running', '{}', 'x', '{}', 1)`,
    "update runs set status = 'completed', ended_at = 2",
  ],
  schedules: [
    `insert into schedules (id, agent, name, cron, timezone, goal, catch_up, owner, paused, created_at, look_at)
     values ('j', 'a', 'n', '* * * * *', 'UTC', 'g', 'once', 'o', 0, 1, ${FAR})`,
    `update schedules set look_at = ${NOW}`,
  ],
  "idempotency keys": [
    `insert into idempotency (scope, key, request, state, fence, lease_until, expires_at) values ('s', 'k', 'r', 'done', 1, 1, ${FAR})`,
    `update idempotency set expires_at = ${NOW}`,
  ],
  claims: [
    `insert into claims (fence, name, key, pattern, holder, mode, taken_at, expires_at, max_until) values (1, 'n', 'k', 0, 'h', 'write', 1, ${FAR}, ${FAR})`,
    `update claims set expires_at = ${NOW}`,
  ],
  mail: [mail(0, FAR), `update mail set due_at = ${NOW}`],
  "mail that wakes": [mail(0, FAR), "update mail set wake = 1"],
  proposals: [
    `insert into proposals (id, hash, subject, proposer, caller, electorate, rule, deadline, pins, writes, external, state, opened, created_at)
     values ('p', 'h', 's', 'x', '{}', '[]', 'majority', ${FAR}, '[]', '[]', 0, 'open', 1, 1)`,
    `update proposals set deadline = ${NOW}`,
  ],
  pools: [
    `insert into pool_keys (pool, key, last_version, expires_at) values ('p', 'k', 1, ${FAR})`,
    `insert into pools (name, kind, definition, revision, state, created_at, remove_at) values ('p', 'run', '{}', 1, 'open', 1, ${NOW})`,
  ],
  approvals: [
    `insert into approvals (id, agent, tool, args, hash, asked_of, state, asked_at, expires_at) values ('a', 'a', 't', '{}', 'h', 'o', 'asked', 1, ${FAR})`,
    `update approvals set expires_at = ${NOW}`,
  ],
  pairings: [
    `insert into pairings (platform, account, peer, state, messages, asked_at, expires_at) values ('p', 'a', 'x', 'pending', 1, 1, ${FAR})`,
    `update pairings set expires_at = ${NOW}`,
  ],
  budgets: [
    `insert into runs (id, status, address, input, decision, created_at) values ('b', 'running', '{}', 'x', '{}', 1)`,
    "insert into budget_reservations (run_id, step, root_id, agent, tokens, cost, at) values ('nobody', 1, 'b', 'a', 1, 1, 1)",
  ],
  "tasks that are overdue": [task("t", ", deadline_at, indexed", `, ${FAR}, 1`), `update tasks set deadline_at = ${NOW}`],
  "ends of tasks to be told": [task("t", ", indexed", ", 1"), "update tasks set untold = 1"],
  "tasks to be found": [task("t", ", indexed", ", 1"), "update tasks set indexed = 0"],
  "older transcripts": [
    "insert into transcript (session_key, position, role, body, run_id, at, indexed) values ('k', 1, 'user', 'x', 'r', 1, 1)",
    "update transcript set indexed = 0",
  ],
  "nodes that are gone": [
    `insert into nodes (id, name, home, version, url, labels, state, started_at, seen_at, lease_ms, revision)
     values ('other', 'o', 'h', '1', 'u', '[]', 'up', 1, ${FAR}, 1000, 1)`,
    `update nodes set seen_at = ${NOW}`,
  ],
  guests: [
    `insert into guests (name, token, client, numbered, joined_at, expires_at) select 'g', 't', 'c', 0, 1, ${FAR} where 1 = 0`,
    `insert into guests (name, token, client, numbered, joined_at, expires_at) values ('g', 'revoked', 'c', 0, 1, ${FAR})`,
  ],
};

const DRAFT = "insert into outbox (id, run_id, address, body, state, created_at) values ('o', 'r', '{}', 'x', 'draft', 1)";
const TABLES =
  `held_turns outbox runs schedules idempotency claims mail proposals pool_keys pools approvals pairings budget_reservations tasks transcript
  nodes guests`.split(/\s+/);

const conditions = (): ReadonlyMap<string, SqlFragment> => {
  const held: Chore = { name: "held turns", due: () => HELD_TURNS, run: async () => {} };
  // A condition needs none of the parts that whoever does the chore does.
  const chores = choresOf({ node: "me" } as ChoreParts, [held]);
  return new Map(chores.flatMap(({ name, due }) => (due ? [[name, due()] as const] : [])));
};

describe.each(PLACES)("what is due, on %s", (_name, makePlace) => {
  let place: StorePlace;
  let store: Store;

  beforeEach(async () => {
    place = makePlace();
    store = await place.open();
  });
  afterEach(() => place.remove());

  test("is asked for in one statement, and each condition holds for what its chore is there for, and for nothing else", async () => {
    const asked = conditions();
    expect([...asked.keys()].sort()).toEqual(Object.keys(CASES).sort());
    const due = async (): Promise<string[]> => {
      const answers = await store.pulse.ask([...asked.values()]);
      return [...asked.keys()].filter((_, index) => answers[index]);
    };
    const plant = (...statements: string[]): Promise<void> =>
      store.transact("plant", async (tx) => {
        for (const statement of statements) await tx.run`${code(statement)}`;
      });
    expect(await due()).toEqual([]);
    for (const [name, [not, now]] of Object.entries(CASES)) {
      await plant(...(name === "drafts of turns that are over" ? [DRAFT] : []), not);
      expect(await due(), `before ${name}`).toEqual([]);
      await plant(now);
      expect(await due(), name).toEqual([name]);
      await plant(...TABLES.map((table) => `delete from ${table}`));
    }
  });

  test("is done, what is not due is left alone, what asks nobody is done every time, and what has its own time when it has come", async () => {
    const done: string[] = [];
    const chore = (name: string, more: Partial<Chore>): Chore => ({ name, run: async () => done.push(name), ...more });
    let often = 0;
    const upkeep = new Upkeep(taskParts(store), "me", quiet, [
      chore("due", { due: () => sql`1 = 1` }),
      chore("not due", { due: () => sql`1 = 0` }),
      chore("local", {}),
      chore("each day", { everyMs: () => DAY }),
      chore("not due, but often", { due: () => sql`1 = 0`, everyMs: () => often }),
    ]);
    await upkeep.round();
    expect(done.splice(0)).toEqual(["due", "local", "each day", "not due, but often"]);
    often = DAY;
    await upkeep.round();
    expect(done.splice(0)).toEqual(["due", "local"]);
  });

  test("one that fails is tried again before its next time", async () => {
    let tries = 0;
    const upkeep = new Upkeep(taskParts(store), "me", quiet, [
      {
        name: "fails once",
        everyMs: () => DAY,
        run: async () => {
          if (++tries === 1) throw new Error("not now");
        },
      },
    ]);
    for (let round = 0; round < 4; round++) await upkeep.round();
    expect(tries).toBe(2);
  });

  test("of several nodes one seals, and the others leave alone what was sealed a moment ago", async () => {
    const tell = (): Promise<unknown> =>
      store.transact("tell", (tx) => store.ledger.append(tx, { type: "daemon.started", actor: "me", subject: ["node", "me"] }));
    const round = (): Promise<void> => new Upkeep(taskParts(store), "me", quiet).round();
    const seals = async (): Promise<number> => (await store.sealer.verify()).seals;
    await tell();
    await round();
    expect(await seals()).toBe(1);
    await tell();
    await round();
    expect(await seals()).toBe(1);
    await place.elapse(1_000);
    await round();
    expect(await seals()).toBe(2);
  });
});
