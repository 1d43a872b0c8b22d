import type { ConfigRevision } from "../../contract/agents.ts";
import type { ConfigProblem } from "../../settings/config-problem.ts";
import type { Tx } from "../../store/engine.ts";
import type { Store } from "../../store/store.ts";

/** A text of the config that was taken or refused. */
export interface NewRevision {
  readonly hash: string;
  readonly state: "applied" | "rejected";
  readonly node: string;
  /** Without the secrets that stand in it; empty where nobody could tell which those are. */
  readonly text: string;
  readonly changes: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

interface RevisionRow {
  readonly number: number;
  readonly hash: string;
  readonly at: number;
  readonly state: "applied" | "rejected";
  readonly node: string;
  readonly changes: string;
  readonly problems: string;
}

/** What the config was when: one row for each text that a daemon has seen, numbered on all nodes together. */
export class ConfigRevisions {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The number of this text: that of the last one, where it is the same and was taken or refused likewise. */
  async recordIn(tx: Tx, revision: NewRevision, always = false): Promise<{ readonly number: number; readonly fresh: boolean }> {
    for (;;) {
      // In this order: what another node adds between the two is found as the same text, or makes the insertion fail. Never a second row.
      const last = await tx.get<{ number: number }>`select number from config_revisions order by number desc limit 1`;
      const same = await tx.get<{ number: number; hash: string }>`select number, hash from config_revisions
        where state = ${revision.state} order by number desc limit 1`;
      if (same && same.hash === revision.hash && !always) return { number: same.number, fresh: false };
      const number = (last?.number ?? 0) + 1;
      // Nodes that start together draw the same number: whoever is late looks again, and may find its own text.
      const added = await tx.run`insert into config_revisions (number, hash, at, state, node, text, changes, problems)
        values (${number}, ${revision.hash}, now_ms(), ${revision.state}, ${revision.node}, ${revision.text.replaceAll("\0", "")},
          ${JSON.stringify(revision.changes)}, ${JSON.stringify(revision.problems)}) on conflict (number) do nothing`;
      if (added === 0) continue;
      const type = revision.state === "applied" ? "config.applied" : "config.rejected";
      const { hash, changes, problems } = revision;
      await this.#store.ledger.append(tx, {
        type,
        actor: revision.node,
        subject: ["config", String(number)],
        data: { number, hash, changes, problems },
      });
      return { number, fresh: true };
    }
  }

  /** Whether no other text was applied after this one. */
  async isNewest(hash: string): Promise<boolean> {
    const last = await this.#store.read.get<{ hash: string }>`select hash from config_revisions
      where state = 'applied' order by number desc limit 1`;
    return last?.hash === hash;
  }

  /** The newest first. */
  async list(limit: number): Promise<ConfigRevision[]> {
    const rows = await this.#store.read.all<RevisionRow>`select number, hash, at, state, node, changes, problems from config_revisions
      order by number desc limit ${limit}`;
    return rows.map((row) => {
      const problems = JSON.parse(row.problems) as ConfigProblem[];
      const quarantined = row.state === "applied" ? [...new Set(problems.map(({ path }) => path.split(".")[1] as string))] : [];
      const { number, hash, at, state, node } = row;
      return { number, hash, at, state, node, changes: JSON.parse(row.changes), problems, quarantined };
    });
  }
}
