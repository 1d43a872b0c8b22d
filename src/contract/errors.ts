/**
 * The one error table: every code a user can meet, who must act, what to do next, and whether trying again helps.
 * HTTP status, exit code and documentation are derived from it.
 */
export type ErrorActor = "caller" | "operator" | "guildhall";
export type RetryRule = "never" | "later" | "same-key";

export interface ErrorEntry {
  readonly status: number;
  readonly exit: 1 | 2;
  readonly actor: ErrorActor;
  readonly retry: RetryRule;
  readonly hint: string;
}

const entry = (status: number, exit: 1 | 2, actor: ErrorActor, retry: RetryRule, hint: string): ErrorEntry => ({
  status,
  exit,
  actor,
  retry,
  hint,
});

export const ERRORS = {
  "request.malformed": entry(422, 2, "caller", "never", "Correct the field named in the message and send it again."),
  "request.too_large": entry(413, 1, "caller", "never", "Send less, or store the large part as a file and refer to it."),
  "request.unauthenticated": entry(
    401,
    1,
    "caller",
    "never",
    "Send `Authorization: Bearer <token>`; the operator's is in <home>/operator.token.",
  ),
  "request.forbidden": entry(403, 1, "caller", "never", "Use a token whose scope covers this, or ask the operator for one."),
  "request.not_found": entry(404, 1, "caller", "never", "Check the id; things you may not see answer the same."),
  "request.busy": entry(429, 1, "caller", "later", "Too much is waiting; send again after the time in Retry-After."),
  "request.key_reused": entry(409, 1, "caller", "never", "This idempotency key belongs to another request; use a new key."),
  "request.in_progress": entry(409, 1, "caller", "later", "The first request with this idempotency key still runs; ask again in a moment."),
  "pool.conflict": entry(
    412,
    1,
    "caller",
    "never",
    "Read the current entry in details.current, decide again, and write with If-Match of its version.",
  ),
  "pool.stale": entry(409, 1, "caller", "never", "What this run has read was changed meanwhile; look at details.stale and decide again."),
  "pool.sealed": entry(409, 1, "caller", "never", "This pool takes no more writes: its run has ended."),
  "pool.exists": entry(409, 1, "operator", "never", "Choose another name, or change the pool where it was made."),
  "pool.invalid_value": entry(422, 1, "caller", "never", "Write a value that fits the key's schema or policy, as the message says."),
  "pool.too_large": entry(413, 1, "caller", "never", "Write less, or ask the operator for a larger max_bytes or `overflow: spill`."),
  "pool.full": entry(413, 1, "caller", "never", "Delete entries, or ask the operator for a larger quota."),
  "claim.held": entry(409, 1, "caller", "later", "Wait until details.expiresAt, or ask with wait_ms to stand in line."),
  "claim.lost": entry(409, 1, "caller", "never", "You no longer hold it; stop touching it and claim it again."),
  "claim.too_many": entry(429, 1, "caller", "later", "Release claims you no longer need, then claim again."),
  "mail.stale": entry(409, 1, "caller", "never", "Its lease has ended and somebody else may have it; receive again."),
  "mail.full": entry(429, 1, "caller", "later", "The mailbox is full; send again when its owner has read some."),
  "proposal.closed": entry(409, 1, "caller", "never", "It is decided already; see its state."),
  "proposal.other_hash": entry(409, 1, "caller", "never", "Read the proposal again and vote on the hash it has now."),
  "proposal.not_elector": entry(403, 1, "caller", "never", "Only the members named when it was opened may vote."),
  "approval.closed": entry(409, 1, "caller", "never", "It was answered or has ended already; see its state."),
  "run.over": entry(409, 1, "caller", "never", "The run has ended already; see its status."),
  "run.stopped": entry(409, 1, "caller", "never", "Somebody stopped this turn; send the message again if it is still wanted."),
  "workspace.outside": entry(403, 1, "caller", "never", "Use a path inside the workspace that leads through no link."),
  "workspace.not_found": entry(404, 1, "caller", "never", "List the folder to see what is there."),
  "workspace.read_only": entry(403, 1, "caller", "never", "Write in the workspace, or ask the operator to share it with `mode: rw`."),
  "workspace.refused": entry(403, 1, "operator", "never", "Check who owns the file and what its permissions are."),
  "workspace.malformed": entry(422, 1, "caller", "never", "Use a shorter path without control characters."),
  "workspace.conflict": entry(409, 1, "caller", "never", "Look at what is there, and choose another name or remove it first."),
  "workspace.too_large": entry(413, 1, "caller", "never", "Read or write it in smaller parts."),
  "workspace.full": entry(507, 1, "operator", "later", "Free disk space; the file is as it was before."),
  "workspace.unavailable": entry(500, 1, "operator", "never", "Run `guildhall doctor` to see what is missing."),
  "usage.wrong": entry(422, 2, "caller", "never", "Run the command with --help to see what it takes."),
  "config.invalid": entry(422, 2, "operator", "never", "Correct the line named in the message and start again."),
  "config.changed": entry(409, 1, "operator", "later", "Somebody else has changed the file; run it again."),
  "config.unwritable": entry(500, 2, "operator", "never", "Make the file and its folder writable for this user, or edit it by hand."),
  "agent.exists": entry(409, 1, "operator", "never", "Choose another id, or change the agent where it stands in the config."),
  "agent.paused": entry(409, 1, "operator", "later", "It goes on after `guildhall agents resume ID`."),
  "agent.archived": entry(409, 1, "operator", "never", "Bring it back with `guildhall agents resume ID`, or route its chats to another."),
  "agent.quarantined": entry(409, 1, "operator", "never", "Correct its section of the config; it is taken up within a second."),
  "agent.unknown": entry(404, 2, "caller", "never", "Name an agent of the config, or none: then the default agent answers."),
  "route.unrouted": entry(403, 1, "operator", "never", "Set `unrouted: default`, or name the agent in the message."),
  "daemon.not_running": entry(503, 1, "operator", "later", "Start it with `guildhall start`."),
  "daemon.already_running": entry(409, 2, "operator", "never", "Stop the other daemon first, or use another --home."),
  "daemon.port_taken": entry(409, 2, "operator", "never", "Choose another port with --port, or stop the program that has it."),
  "daemon.cannot_listen": entry(500, 2, "operator", "never", "Check --host and --port: the address must be one of this machine's."),
  "daemon.stopping": entry(503, 1, "caller", "later", "The daemon is stopping; send again when it is back."),
  "home.unusable": entry(500, 2, "operator", "never", "Make the directory writable for this user, or choose another with --home."),
  "store.corrupt": entry(
    500,
    2,
    "operator",
    "never",
    "Nothing was changed. Move the file away, then restore a backup with `guildhall restore FILE`.",
  ),
  "store.newer_schema": entry(500, 2, "operator", "never", "Upgrade Guildhall to at least the version that last used this database."),
  "store.changed_schema": entry(
    500,
    2,
    "operator",
    "never",
    "This database was made by a different build; use that build, or restore a backup.",
  ),
  "store.unreachable": entry(
    503,
    2,
    "operator",
    "later",
    "Check the address in `store:`, that the server runs, and that this machine may reach it.",
  ),
  "store.refused_login": entry(503, 2, "operator", "never", "Check user, password and database name in `store:`."),
  "store.read_only": entry(503, 2, "operator", "later", "Point `store:` at the primary server, not at a replica."),
  "store.unwritable": entry(500, 2, "operator", "never", "Make the directory and file writable for this user, or choose another --home."),
  "store.outdated_sqlite": entry(
    500,
    2,
    "operator",
    "never",
    "Use Node 24.15 or later: older SQLite versions can corrupt the write-ahead log.",
  ),
  "store.missing": entry(404, 1, "operator", "never", "Check --home: nothing has been stored there yet."),
  "store.full": entry(507, 1, "operator", "later", "Free disk space; nothing of the refused operation was stored."),
  "store.unavailable": entry(
    503,
    1,
    "operator",
    "later",
    "The database does not answer; the operation was not acknowledged. It reconnects by itself.",
  ),
  "store.outcome_unknown": entry(503, 1, "caller", "same-key", "The answer to the commit was lost; repeat with the same idempotency key."),
  "store.contention": entry(503, 1, "caller", "later", "Too many writers want the same rows; try again in a moment."),
  "store.nested_transaction": entry(500, 1, "guildhall", "never", "A transaction was opened inside another; pass the open one on."),
  "store.transaction_too_slow": entry(500, 1, "guildhall", "never", "A transaction waited for something slow; do that before opening it."),
  "store.broken_ledger": entry(500, 1, "operator", "never", "The ledger was changed from outside; compare with a backup."),
  "fence.stale": entry(409, 1, "caller", "never", "Another owner has taken over; stop, and read the current state."),
  "backup.unreadable": entry(422, 2, "operator", "never", "Use a file written by `guildhall backup`."),
  "backup.target_not_empty": entry(409, 2, "operator", "never", "Restore into an empty home or database."),
  "backup.unwritable": entry(422, 2, "operator", "never", "Choose a file in a directory that exists and that this user may write."),
  "model.unknown": entry(422, 2, "operator", "never", "Name a model as <provider>/<model>; offline/demo needs no key."),
  "model.failed": entry(502, 1, "operator", "later", "Check the provider's key and whether it answers."),
  "internal.bug": entry(500, 1, "guildhall", "never", "This is a defect of Guildhall; please report it with this line and the log."),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;
