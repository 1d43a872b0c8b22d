import type { PlantedBug } from "./bugs.ts";

const AGREEMENTS = "src/records/agreements/agreements.ts";
const DECIDE = "src/acts/decide-proposal.ts";
const ATTACHED = "src/acts/attached-writes.ts";
const votes = { tests: ["test/contract/agreements.test.ts"] };
const writes = { tests: ["test/contract/agreement-writes.test.ts"] };

/** Bugs in agreements, and in what acts do to pools and mail. */
export const AGREEMENT_BUGS: readonly PlantedBug[] = [
  {
    name: "a vote at the deadline is in time",
    file: DECIDE,
    from: "proposal.now >= proposal.deadline",
    to: "proposal.now > proposal.deadline",
    ...votes,
    filter: "A4",
  },
  {
    name: "proposals are decided without holding them",
    file: AGREEMENTS,
    from: "where p.id = ${id} ${this.#store.dialect.forUpdate}`",
    to: "where p.id = ${id}`",
    ...votes,
    filter: "A3",
  },
  {
    name: "votes on another hash count",
    file: AGREEMENTS,
    from: "and hash = ${proposal.hash} group by vote",
    to: "group by vote",
    ...votes,
    filter: "A2",
  },
  {
    name: "half is a majority",
    file: "src/records/agreements/verdict.ts",
    from: "Math.floor(electors / 2) + 1",
    to: "Math.ceil(electors / 2)",
    tests: ["test/models/agreements.model.test.ts"],
  },
  {
    name: "the sweep leaves out those nobody voted on",
    file: AGREEMENTS,
    from: "where state = 'open' and deadline <= now_ms() order by deadline",
    to: "where state = 'open' and deadline <= now_ms() and exists (select 1 from votes where proposal = id) order by deadline",
    ...votes,
    filter: "A4",
  },
  {
    name: "a proposal trusts the hash in its row",
    file: "src/records/agreements/proposal-rows.ts",
    from: "hash: hashOf(terms),",
    to: "hash: row.hash,",
    ...votes,
    filter: "A2",
  },
  {
    name: "pinned entries are not held while the proposal is committed",
    file: ATTACHED,
    from: "keysOf(pins), true)",
    to: "keysOf(pins), false)",
    ...writes,
    filter: "V4",
  },
  {
    name: "a pin that has moved is overlooked",
    file: ATTACHED,
    from: "if (current !== pin.version) return moved(pin, current);",
    to: "",
    ...writes,
    filter: "A5",
  },
  {
    name: "a slow vote launders what was proposed upon external input",
    file: ATTACHED,
    from: "{ external: proposal.external, causedBy }",
    to: "{ external: false, causedBy }",
    ...writes,
    filter: "P5",
  },
  {
    name: "a full mailbox blocks a retraction",
    file: "src/acts/retract-entry.ts",
    from: 'if (!isFailure(error, "mail.full")) throw error;',
    to: 'if (!isFailure(error, "mail.stale")) throw error;',
    tests: ["test/contract/acts-on-pools-and-mail.test.ts"],
  },
];
