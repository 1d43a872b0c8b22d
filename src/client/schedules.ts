import {
  type NewSchedule,
  ranSchedule,
  removedSchedule,
  type Schedule,
  type ScheduleList,
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

  list(agent?: string): Promise<ScheduleList> {
    return this.#api.get(scheduleList, "/api/schedules", { agent });
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
