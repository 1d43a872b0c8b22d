import { isTaskOver, type Task, type TaskList, type TaskListQuery, type TaskSearchQuery } from "../../contract/tasks.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import type { Reads } from "../../store/engine.ts";
import { type SqlFragment, sql } from "../../store/sql.ts";
import type { Store } from "../../store/store.ts";
import { relayBelow } from "./relay-below.ts";
import { type FoundTasks, searchTasks } from "./search-tasks.ts";
import { idsBeginning, seenTasks } from "./seen-tasks.ts";
import { SHOWN, type ShownRow, STATUS, shown } from "./task-view.ts";
import { eyesOf, type SeeingAgents } from "./task-viewers.ts";

/** Tasks, as somebody may see them. What one may not see does not exist for one. */
export class Tasks {
  readonly #store: Store;
  readonly #agents: SeeingAgents;

  constructor(store: Store, agents: SeeingAgents) {
    this.#store = store;
    this.#agents = agents;
  }

  /** By its id, or the beginning of one. `reads`: the open transaction, where something follows from it. */
  async read(caller: Caller, id: string, reads: Reads = this.#store.read): Promise<Task> {
    const whole = await this.idOf(caller, id, reads);
    const rows = await reads.all<ShownRow>`select ${SHOWN} from tasks as t where t.id = ${whole}`;
    const [task] = await shown(reads, rows);
    if (!task) throw unknown(id);
    return { ...task, relay: await relayBelow(reads, whole) };
  }

  /** The whole id of one that the caller may see. Several that begin so are as good as none. */
  async idOf(caller: Caller, id: string, reads: Reads = this.#store.read): Promise<string> {
    const [only, another] = id === "" ? [] : await idsBeginning(reads, eyesOf(caller, this.#agents), id, 2);
    if (only !== undefined && another !== undefined && only !== id)
      throw new Failure("request.not_found", `several tasks begin with "${id}"`, { hint: "Write more of the id." });
    if (only === undefined) throw unknown(id);
    return only;
  }

  /** The same, of one that the caller may end: who only looks on, or only does it, may not. */
  async ownId(caller: Caller, id: string, reads: Reads = this.#store.read): Promise<string> {
    const whole = await this.idOf(caller, id, reads);
    if (caller.kind === "operator") return whole;
    const row = await reads.get<{ opened_by: string; above: string | null }>`select t.opened_by,
      (select p.viewers from tasks as p where p.id = t.parent_id) as above from tasks as t where t.id = ${whole}`;
    const commanding = row ? [row.opened_by, ...(JSON.parse(row.above ?? "[]") as string[])] : [];
    if ((caller.kind === "agent" || caller.kind === "guest") && commanding.includes(caller.name)) return whole;
    throw new Failure(
      "request.forbidden",
      `the task ${whole} was opened by ${row?.opened_by ?? "another"}: you may look at it, and not end it`,
    );
  }

  /** The newest first. */
  async list(caller: Caller, { agent, status, below, limit, before }: TaskListQuery): Promise<TaskList> {
    const above = below === undefined ? null : await this.idOf(caller, below);
    // Whoever sees a task sees everything below it.
    const eyes = above === null ? eyesOf(caller, this.#agents) : "all";
    const conditions = [
      ...(agent === undefined ? [] : [sql`t.agent = ${agent}`]),
      ...(above === null ? [] : [sql`t.id in ${treeBelow(above)}`]),
      ...statusIs(status),
    ];
    const wanted = { below: before, conditions, limit: limit + 1 };
    const rows = await seenTasks<ShownRow>(this.#store.read, eyes, SHOWN, wanted);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return { tasks: await shown(this.#store.read, rows.slice(0, limit)), next: last?.id ?? null };
  }

  search(caller: Caller, query: TaskSearchQuery): Promise<FoundTasks> {
    return searchTasks(this.#store, eyesOf(caller, this.#agents), query);
  }
}

function unknown(id: string): Failure {
  return new Failure("request.not_found", `there is no task "${id}"`);
}

function treeBelow(above: string): SqlFragment {
  return sql`(with recursive tree (id) as (select c.id from tasks as c where c.parent_id = ${above}
    union select c.id from tree join tasks as c on c.parent_id = tree.id) select id from tree)`;
}

function statusIs(status: Task["status"] | undefined): SqlFragment[] {
  if (status === undefined) return [];
  if (isTaskOver(status)) return [sql`t.ended_at is not null and t.status = ${status}`];
  return [sql`t.ended_at is null and ${STATUS} = ${status}`];
}
