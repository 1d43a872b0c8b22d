import {
  holdVisibleJobIn,
  maySee,
  pauseJobIn,
  putJobIn,
  removeJobIn,
  resumeJobIn,
  runJobIn,
  viewOfJob,
} from "../../acts/schedules/manage-jobs.ts";
import type { ScheduleParts } from "../../acts/schedules/schedule-parts.ts";
import { newSchedule, ranSchedule, removedSchedule, schedule, scheduleList, scheduleQuery } from "../../contract/schedules.ts";
import type { CallerKind } from "../../kernel/caller.ts";
import { type Route, route } from "./route.ts";

const MAKERS: readonly CallerKind[] = ["operator", "agent"];
const SEERS: readonly CallerKind[] = ["operator", "reader", "agent"];

export function schedulesRoutes(parts: ScheduleParts): Route[] {
  const { schedules } = parts;
  const { store } = parts.tasks;
  return [
    route({
      method: "GET",
      path: "/api/schedules",
      summary: "Jobs that start by the clock; an agent sees its own",
      allow: SEERS,
      query: scheduleQuery,
      answers: { 200: scheduleList },
      handle: async ({ caller, query }) => {
        const { agent, after, limit } = query;
        // Whoever asks for another's sees what there is for it: nothing.
        if (agent !== undefined && !maySee(caller, { agent })) return { status: 200, body: { schedules: [], next: null } };
        const jobs = await schedules.list(caller.kind === "agent" ? caller.name : agent, { after, limit: limit + 1 });
        const page = jobs.slice(0, limit);
        const shown = await Promise.all(page.map((job) => viewOfJob(parts, store.read, job)));
        return { status: 200, body: { schedules: shown, next: jobs.length > limit ? (page.at(-1)?.id ?? null) : null } };
      },
    }),
    route({
      method: "POST",
      path: "/api/schedules",
      summary: "Add a job, or replace the agent's job of this name (200)",
      allow: MAKERS,
      body: newSchedule,
      answers: { 201: schedule, 200: schedule },
      handle: async ({ caller, body, transact }) => {
        await schedules.cron();
        return transact("put job", async (tx) => {
          const { job, fresh } = await putJobIn(parts, tx, caller, body);
          return { status: fresh ? 201 : 200, body: await viewOfJob(parts, tx, job) };
        });
      },
    }),
    route({
      method: "DELETE",
      path: "/api/schedules/:id",
      summary: "Remove a job; a task of it that is open goes on",
      allow: MAKERS,
      answers: { 200: removedSchedule },
      handle: ({ caller, params, transact }) =>
        transact("remove job", async (tx) => {
          const job = await holdVisibleJobIn(parts, tx, caller, params.id);
          await removeJobIn(parts, tx, caller, job);
          return { status: 200, body: { id: job.id, removed: true } };
        }),
    }),
    route({
      method: "POST",
      path: "/api/schedules/:id/pause",
      summary: "Start nothing of this job until it is resumed",
      allow: MAKERS,
      answers: { 200: schedule },
      handle: ({ caller, params, transact }) =>
        transact("pause job", async (tx) => {
          const job = await pauseJobIn(parts, tx, caller, await holdVisibleJobIn(parts, tx, caller, params.id));
          return { status: 200, body: await viewOfJob(parts, tx, job) };
        }),
    }),
    route({
      method: "POST",
      path: "/api/schedules/:id/resume",
      summary: "Let the job be due again, from now on",
      allow: MAKERS,
      answers: { 200: schedule },
      handle: async ({ caller, params, transact }) => {
        await schedules.cron();
        return transact("resume job", async (tx) => {
          const job = await resumeJobIn(parts, tx, caller, await holdVisibleJobIn(parts, tx, caller, params.id));
          return { status: 200, body: await viewOfJob(parts, tx, job) };
        });
      },
    }),
    route({
      method: "POST",
      path: "/api/schedules/:id/run",
      summary: "Start its task now, besides its times",
      allow: MAKERS,
      answers: { 202: ranSchedule },
      handle: ({ caller, params, transact }) =>
        transact("run job", async (tx) => {
          const job = await holdVisibleJobIn(parts, tx, caller, params.id);
          const opened = await runJobIn(parts, tx, caller, job);
          if ("refused" in opened) throw opened.refused;
          return { status: 202, body: { id: job.id, task: opened.id } };
        }),
    }),
  ];
}
