import type { PlantedBug } from "./bugs.ts";

const CLAIMS = "src/records/claims/claims.ts";
const CLAIM_ROWS = "src/records/claims/claim-rows.ts";
const MAILBOX = "src/records/mailbox/mailbox.ts";
const RECEIVE = "src/records/mailbox/receive-mail.ts";
const claims = { tests: ["test/contract/claims.test.ts"] };
const mail = { tests: ["test/contract/mailbox.test.ts"] };

/** Bugs in claims and mail. */
export const COORDINATION_BUGS: readonly PlantedBug[] = [
  {
    name: "a lost claim can be renewed",
    file: CLAIMS,
    from: 'where fence = ${fence} and name = ${resource} and ${mayTouch(caller)} and expires_at > now_ms() returning ${COLUMNS}`;\n    if (!row) throw lost(resource, fence);\n    await this.#tell(tx, "claim.renewed"',
    to: 'where fence = ${fence} and name = ${resource} and ${mayTouch(caller)} returning ${COLUMNS}`;\n    if (!row) throw lost(resource, fence);\n    await this.#tell(tx, "claim.renewed"',
    ...claims,
  },
  {
    name: "a claim is everybody's who knows its fence",
    file: CLAIMS,
    from: 'return caller.kind === "operator" ? code("true") : sql`holder = ${caller.name}`;',
    to: 'return caller.kind === "operator" ? code("true") : sql`holder <> ${caller.roles.join()}`;',
    ...claims,
  },
  {
    name: "the guard of a claim forgets the time",
    file: CLAIMS,
    from: "select name from claims\n      where fence = ${fence} and ${mayTouch(caller)} and expires_at > now_ms() ${this.#store.dialect.forUpdate}",
    to: "select name from claims\n      where fence = ${fence} and ${mayTouch(caller)} ${this.#store.dialect.forUpdate}",
    tests: ["test/contract/claims.test.ts"],
  },
  {
    name: "the guard of a claim does not hold it",
    file: CLAIMS,
    from: "select name from claims\n      where fence = ${fence} and ${mayTouch(caller)} and expires_at > now_ms() ${this.#store.dialect.forUpdate}",
    to: "select name from claims\n      where fence = ${fence} and ${mayTouch(caller)} and expires_at > now_ms()",
    ...claims,
    filter: "L2",
  },
  {
    name: "claims are decided without a lock",
    file: CLAIMS,
    from: "        await lockFor(tx, asked);\n",
    to: "",
    ...claims,
    filter: "PostgreSQL",
  },
  {
    name: "a takeover of a claim does not look whether it was renewed meanwhile",
    file: CLAIMS,
    from: "in ${list(fences.slice(from, from + SWEEP_ROWS))} and expires_at <= now_ms() returning",
    to: "in ${list(fences.slice(from, from + SWEEP_ROWS))} returning",
    ...claims,
    filter: "L5",
  },
  {
    name: "who comes later takes a claim before those who wait",
    file: CLAIMS,
    from: "return holder ?? (own ? undefined : ahead);",
    to: "return own ? undefined : holder;",
    ...claims,
  },
  {
    name: "whoever has left is given a claim all the same",
    file: CLAIMS,
    from: "if (left <= 0 || options.signal?.aborted) throw held",
    to: "if (left <= 0) throw held",
    ...claims,
  },
  {
    name: "claims through a pattern above are not seen",
    file: CLAIM_ROWS,
    from: 'resource.keysAbove.length === 0 ? code("")',
    to: 'resource.keysAbove.length >= 0 ? code("")',
    ...claims,
  },
  {
    name: "shared claims are in each other's way",
    file: CLAIM_ROWS,
    from: 'mode === "exclusive" ? sql`holder <> ${holder}`',
    to: 'mode !== "" ? sql`holder <> ${holder}`',
    ...claims,
  },
  {
    name: "mail is acked with any fence",
    file: MAILBOX,
    from: "set state = 'acked', ${this.#settling.ended}\n      where id = ${id} and fence = ${fence}",
    to: "set state = 'acked', ${this.#settling.ended}\n      where id = ${id} and fence >= ${fence}",
    ...mail,
    filter: "M3",
  },
  {
    name: "mail is acked after its lease",
    file: MAILBOX,
    from: "set state = 'acked', ${this.#settling.ended}\n      where id = ${id} and fence = ${fence} and leased_by = ${caller.name} and state = 'leased' and due_at > now_ms()",
    to: "set state = 'acked', ${this.#settling.ended}\n      where id = ${id} and fence = ${fence} and leased_by = ${caller.name} and state = 'leased'",
    ...mail,
    filter: "M3",
  },
  {
    name: "mail overtakes what waits to come again",
    file: RECEIVE,
    from: "state in ('leased', 'delayed')",
    to: "state in ('leased')",
    ...mail,
    filter: "M2",
  },
  {
    name: "mail is handed out without a lock",
    file: MAILBOX,
    from: "    await lockBoxes(tx, boxes);\n",
    to: "",
    ...mail,
    filter: "PostgreSQL",
  },
  {
    name: "mail is counted without a lock",
    file: MAILBOX,
    from: "    await lockBoxes(tx, [mail.to]);\n",
    to: "",
    ...mail,
    filter: "M5",
  },
  {
    name: "mail never dies",
    file: "src/records/mailbox/settling.ts",
    from: 'row.state === "leased" && row.attempts >= MAX_ATTEMPTS',
    to: 'row.state === "leased" && row.attempts > MAX_ATTEMPTS',
    ...mail,
  },
];
