import { decideDue } from "../acts/decide-due.ts";
import type { AgreementParts } from "../acts/decide-proposal.ts";
import { settleLeftDrafts } from "../acts/draft-reply.ts";
import { sweepGuests } from "../acts/end-guest.ts";
import { fireDueJobs } from "../acts/schedules/fire-jobs.ts";
import type { ScheduleParts } from "../acts/schedules/schedule-parts.ts";
import { failOverdueTasks, tellUntoldEnds } from "../acts/tasks/overdue-tasks.ts";
import type { TaskParts } from "../acts/tasks/task-parts.ts";
import { wakeForWaitingMail } from "../acts/wake-agent.ts";
import type { Chore } from "../drivers/dispatch/upkeep.ts";
import { APPROVALS_DUE, type Approvals } from "../records/access/approvals.ts";
import { GUESTS_GONE, type Guests } from "../records/access/guests.ts";
import { PROPOSALS_DUE } from "../records/agreements/agreements.ts";
import { PAIRINGS_OLD, sweepPairings } from "../records/channels/pairings.ts";
import { CLAIMS_DUE, type Claims } from "../records/claims/claims.ts";
import { MAIL_DUE, type Mailbox } from "../records/mailbox/mailbox.ts";
import { MAIL_THAT_WAKES } from "../records/mailbox/wakes.ts";
import { nodesGone, sweepNodes } from "../records/nodes/nodes.ts";
import { POOLS_DUE } from "../records/pools/sweep.ts";
import { JOBS_DUE } from "../records/schedules/schedules.ts";
import { indexTranscripts, TRANSCRIPTS_UNINDEXED } from "../records/sessions/index-transcripts.ts";
import { LEFT_DRAFTS } from "../records/sessions/outbox.ts";
import { ENDS_UNTOLD, TASKS_OVERDUE } from "../records/tasks/due-tasks.ts";
import { Retention } from "../records/tasks/retention.ts";
import { indexTasks, TASKS_UNINDEXED } from "../records/tasks/task-index.ts";
import { type Budgets, RESERVATIONS_LEFT } from "../records/usage/budgets.ts";
import { removeWorkflowRuns } from "../records/workflows/workflow-run-rows.ts";
import { KEYS_EXPIRED } from "../store/idempotency.ts";

export interface ChoreParts extends TaskParts {
  /** This one, in this life of it. */
  readonly node: string;
  readonly schedules: ScheduleParts;
  readonly claims: Claims;
  readonly mailbox: Mailbox;
  readonly agreement: AgreementParts;
  readonly approvals: Approvals;
  readonly budgets: Budgets;
  readonly guests: Guests;
}

const DUE_AT_ONCE = 100;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** What every room has to do now and then; `own`: what this daemon has to do besides, before all else. */
export function choresOf(parts: ChoreParts, own: readonly Chore[]): Chore[] {
  const { store, agents, newId, pools, node, schedules, claims, mailbox, agreement, approvals, budgets, guests } = parts;
  const keptFor = (name: string): number | null => {
    const { agents: known, settings } = agents.current;
    const agent = known.get(name);
    return agent ? agent.retention : (settings.config.retention ?? null);
  };
  const retention = new Retention(store, keptFor, removeWorkflowRuns);
  return [
    ...own,
    { name: "drafts of turns that are over", due: () => LEFT_DRAFTS, run: () => settleLeftDrafts(store) },
    { name: "schedules", due: () => JOBS_DUE, run: () => fireDueJobs(schedules) },
    { name: "idempotency keys", due: () => KEYS_EXPIRED, run: () => store.idempotency.sweep() },
    { name: "claims", due: () => CLAIMS_DUE, everyMs: () => MINUTE_MS, run: () => claims.sweep() },
    { name: "mail", due: () => MAIL_DUE, everyMs: () => MINUTE_MS, run: () => mailbox.sweep() },
    { name: "mail that wakes", due: () => MAIL_THAT_WAKES, run: () => wakeForWaitingMail({ store, agents, newId }) },
    { name: "proposals", due: () => PROPOSALS_DUE, run: () => decideDue(agreement, DUE_AT_ONCE) },
    { name: "pools", due: () => POOLS_DUE, run: () => pools.sweep() },
    // It looks at everything that is kept: now and then is often enough.
    { name: "what nobody refers to", everyMs: () => HOUR_MS, run: () => store.blobs.sweep(HOUR_MS) },
    { name: "approvals", due: () => APPROVALS_DUE, run: () => approvals.sweep() },
    { name: "pairings", due: () => PAIRINGS_OLD, run: () => sweepPairings(store) },
    { name: "budgets", due: () => RESERVATIONS_LEFT, run: () => budgets.sweep() },
    { name: "tasks that are overdue", due: () => TASKS_OVERDUE, run: () => failOverdueTasks(parts) },
    { name: "ends of tasks to be told", due: () => ENDS_UNTOLD, run: () => tellUntoldEnds(parts) },
    { name: "tasks to be found", due: () => TASKS_UNINDEXED, run: () => indexTasks(store) },
    { name: "tasks that were kept long enough", everyMs: () => (retention.isBehind ? 0 : MINUTE_MS), run: () => retention.sweep() },
    { name: "older transcripts", due: () => TRANSCRIPTS_UNINDEXED, run: () => indexTranscripts(store) },
    { name: "nodes that are gone", due: () => nodesGone(node), run: () => sweepNodes(store, node) },
    { name: "guests", due: () => GUESTS_GONE, run: () => sweepGuests({ store, guests, claims }) },
  ];
}
