import type { ConfigRevision } from "../../contract/agents.ts";
import { Failure } from "../../kernel/failure.ts";
import type { ConfigProblem } from "../../settings/config-problem.ts";
import type { Tx } from "../../store/engine.ts";
import { type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";

/** A text of the config that was taken or refused. */
export interface NewRevision {
  readonly hash: string;
  readonly state: "applied" | "rejected";
  /** The name of the node that has seen it. */
  readonly node: string;
  /** For the ledger: that node in this life. */
  readonly actor: string;
  /** Without the secrets that stand in it; empty where nobody could tell which those are. */
  readonly text: string;
  /** Nothing was taken out of the text: other nodes can read it. */
  readonly isWhole: boolean;
  readonly changes: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

export interface RecordRules {
  /** Also where the text is the last one's. */
  readonly always?: boolean;
  /** What was newest when this was decided on; null: nothing. Refused where another text has been applied since. */
  readonly after?: number | null;
}

/** The text that everybody is to run on, as far as a look at it goes. */
export interface NewestRevision {
  readonly number: number;
  readonly hash: string;
  readonly node: string;
}

export interface StoredText {
  /** Null: a secret stands in it, and it is kept by whoever wrote it. */
  readonly text: string | null;
  /** Agents whose sections are broken wherever it is read. */
  readonly quarantined: readonly string[];
}

interface RevisionRow {
  readonly number: number;
  readonly hash: string;
  readonly at: number;
  readonly state: "applied" | "rejected";
  readonly node: string;
  readonly changes: string;
  readonly problems: string;
  readonly is_whole: number;
}

/** Another text was applied since that one, or the same again. */
export function appliedAfter(number: number): SqlFragment {
  return sql`exists (select 1 from config_revisions where number > cast(${number} as bigint) and state = 'applied')`;
}

/** What the config was when: one row for each text that a daemon has seen, numbered on all nodes together. */
export class ConfigRevisions {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The number of this text: that of the last one, where it is the same and was taken or refused likewise. */
  async recordIn(
    tx: Tx,
    revision: NewRevision,
    { always = false, after }: RecordRules = {},
  ): Promise<{ readonly number: number; readonly fresh: boolean }> {
    for (;;) {
      // In this order: what another node adds between the two is found as the same text, or makes the insertion fail. Never a second row.
      const last = await tx.get<{ number: number }>`select number from config_revisions order by number desc limit 1`;
      const same = await tx.get<{ number: number; hash: string }>`select number, hash from config_revisions
        where state = ${revision.state} order by number desc limit 1`;
      if (same && same.hash === revision.hash && !always) {
        await this.#completeIn(tx, same.number, revision);
        return { number: same.number, fresh: false };
      }
      if (after !== undefined && (same?.number ?? null) !== after && same?.hash !== revision.hash)
        throw new Failure("config.changed", `revision ${same?.number} of the config was applied meanwhile`);
      const number = (last?.number ?? 0) + 1;
      // Nodes that start together draw the same number: whoever is late looks again, and may find its own text.
      const text = revision.text.replaceAll("\0", "");
      const isWhole = revision.isWhole && text === revision.text;
      const added = await tx.run`insert into config_revisions (number, hash, at, state, node, text, changes, problems, is_whole)
        values (${number}, ${revision.hash}, now_ms(), ${revision.state}, ${revision.node}, ${text},
          ${JSON.stringify(revision.changes)}, ${JSON.stringify(revision.problems)}, ${isWhole ? 1 : 0}) on conflict (number) do nothing`;
      if (added === 0) continue;
      tx.hint("config");
      const type = revision.state === "applied" ? "config.applied" : "config.rejected";
      const { hash, changes, problems } = revision;
      await this.#store.ledger.append(tx, {
        type,
        actor: revision.actor,
        subject: ["config", String(number)],
        data: { number, hash, changes, problems },
      });
      return { number, fresh: true };
    }
  }

  /** Programs before 0.2.0 did not say whether they had taken anything out: whoever has the same text knows. */
  async #completeIn(tx: Tx, number: number, { text, isWhole }: NewRevision): Promise<void> {
    if (!isWhole || text.includes("\0")) return;
    await tx.run`update config_revisions set text = ${text}, is_whole = 1 where number = ${number} and is_whole = 0`;
  }

  /** Whether no other text was applied after this one. */
  async isNewest(hash: string): Promise<boolean> {
    return (await this.newest())?.hash === hash;
  }

  /** Undefined where nothing was ever applied. */
  newest(): Promise<NewestRevision | undefined> {
    return this.#store.read.get<NewestRevision>`select number, hash, node from config_revisions
      where state = 'applied' order by number desc limit 1`;
  }

  /** The last number under which this text was applied. */
  async numberOf(hash: string): Promise<number | undefined> {
    const row = await this.#store.read.get<{ number: number }>`select number from config_revisions
      where state = 'applied' and hash = ${hash} order by number desc limit 1`;
    return row?.number;
  }

  /** Of one that was applied. It may have been stored whole before, or since. */
  async textOf({ number, hash }: Pick<NewestRevision, "number" | "hash">): Promise<StoredText> {
    const { read } = this.#store;
    const row = await read.get<{ problems: string }>`select problems from config_revisions where number = ${number}`;
    const whole = await read.get<{ text: string }>`select text from config_revisions
      where state = 'applied' and hash = ${hash} and is_whole = 1 order by number desc limit 1`;
    return { text: whole?.text ?? null, quarantined: quarantinedIn(JSON.parse(row?.problems ?? "[]")) };
  }

  /** The newest first. */
  async list(limit: number): Promise<ConfigRevision[]> {
    const rows = await this.#store.read.all<RevisionRow>`select number, hash, at, state, node, changes, problems, is_whole
      from config_revisions order by number desc limit ${limit}`;
    return rows.map((row) => {
      const problems = JSON.parse(row.problems) as ConfigProblem[];
      const quarantined = row.state === "applied" ? quarantinedIn(problems) : [];
      const { number, hash, at, state, node } = row;
      return { number, hash, at, state, node, shared: row.is_whole === 1, changes: JSON.parse(row.changes), problems, quarantined };
    });
  }
}

/** Whatever is wrong with a text that was applied all the same stands in the sections of agents. */
function quarantinedIn(problems: readonly ConfigProblem[]): string[] {
  return [...new Set(problems.map(({ path }) => path.split(".")[1] as string))];
}
