import {
  type NewSchedule,
  ranSchedule,
  removedSchedule,
  type Schedule,
  type ScheduleList,
  type ScheduleQuery,
  schedule,
  scheduleList,
} from "../contract/schedules.ts";
import type { ApiClient } from "./api-client.ts";

/** Jobs that start by the clock. */
export class SchedulesClient {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  list(query: ScheduleQuery = {}): Promise<ScheduleList> {
    return this.#api.get(scheduleList, "/api/schedules", query);
  }

  /** Page by page. */
  async all(agent?: string): Promise<Schedule[]> {
    const found: Schedule[] = [];
    for (let after: string | undefined; ; ) {
      const { schedules, next } = await this.list({ agent, after });
      found.push(...schedules);
      if (next === null) return found;
      after = next;
    }
  }

  /** The agent's job of the same name is replaced. */
  put(job: NewSchedule): Promise<Schedule> {
    return this.#api.post(schedule, "/api/schedules", job);
  }

  async remove(id: string): Promise<void> {
    await this.#api.remove(removedSchedule, pathOf(id));
  }

  pause(id: string): Promise<Schedule> {
    return this.#api.post(schedule, `${pathOf(id)}/pause`, {});
  }

  resume(id: string): Promise<Schedule> {
    return this.#api.post(schedule, `${pathOf(id)}/resume`, {});
  }

  /** Answers the task. */
  async run(id: string): Promise<string> {
    return (await this.#api.post(ranSchedule, `${pathOf(id)}/run`, {})).task;
  }
}

function pathOf(id: string): string {
  return `/api/schedules/${encodeURIComponent(id)}`;
}
