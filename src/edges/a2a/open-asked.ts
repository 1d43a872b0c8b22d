import type { Message, Part, SendMessageRequest } from "@a2a-js/sdk";
import { openTaskIn } from "../../acts/tasks/open-task.ts";
import { aboveElsewhere } from "../../acts/tasks/task-above.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import { HOPS_EXTENSION, type Hops, hops as hopsSchema, MAX_HOPS } from "../../contract/a2a.ts";
import { newTask } from "../../contract/tasks.ts";
import { identifier } from "../../contract/text.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { type AskedTask, countOpenOf, messageKey, readAskedTask, setConversation } from "../../records/tasks/asked-tasks.ts";
import { houseId } from "../../records/tasks/house-id.ts";
import { readTaskByKey } from "../../records/tasks/task-rows.ts";

/** A message opens a task; sent again, it is the same task. */
export async function openAsked(parts: TaskParts, caller: Caller, agent: string, request: SendMessageRequest): Promise<AskedTask> {
  const { store, newId, agents } = parts;
  const { message } = request;
  if (!message) throw malformed("message: expected one");
  const messageId = named("messageId", message.messageId);
  const conversation = message.contextId === "" ? newId() : named("contextId", message.contextId);
  const goal = textOf(message.parts);
  const claimed = claimedIn(request, message);
  await refuseLoop(parts, claimed);
  const { a2a } = agents.current.settings.config;
  const key = messageKey(agent, messageId);
  const opened = await store.transact(
    "open asked task",
    async (tx) => {
      const isKnown = (await readTaskByKey(tx, caller.name, key)) !== undefined;
      if (!isKnown && caller.kind !== "operator" && (await countOpenOf(store, tx, caller.name)) >= a2a.max_open)
        return {
          refused: new Failure("task.too_many", `${a2a.max_open} tasks of ${caller.name} are open, and no more may be (a2a.max_open)`),
        };
      const opened = await openTaskIn(parts, tx, {
        kind: "api",
        agent,
        from: caller.name,
        parent: null,
        goal,
        spec: { conversation, ...(claimed ? { hops: claimed.houses } : {}) },
        // What comes from elsewhere is somebody else's word.
        ...(caller.kind === "operator" ? {} : { labels: ["external"] as const }),
        ...grantedTo(parts, caller, agent),
        above: aboveElsewhere(Math.max(0, (claimed?.depth ?? 1) - 1), deepest(parts, caller, claimed), [caller.name]),
        idempotencyKey: key,
      });
      if (!("refused" in opened) && opened.isNew) await setConversation(tx, opened.id, conversation);
      return opened;
    },
    "locked",
  );
  if ("refused" in opened) throw opened.refused;
  const task = (await readAskedTask(store.read, opened.id)) as AskedTask;
  if (task.goal !== goal) throw malformed(`messageId: "${messageId}" was another message`);
  return task;
}

/** Whoever acts as one of our agents has its rights, and no others. */
function grantedTo({ agents: { current } }: TaskParts, caller: Caller, agent: string) {
  if (caller.kind !== "agent") return {};
  return { granted: current.policy.grantOfDelegate(current.policy.grantOf(caller.name), agent) };
}

/** What is claimed may lower it, and nothing else. */
function deepest({ agents: { current } }: TaskParts, caller: Caller, claimed: Hops | undefined): number {
  const own = caller.kind === "agent" ? (current.agents.get(caller.name)?.subagents.maxDepth ?? 0) : Number.POSITIVE_INFINITY;
  return Math.min(current.settings.config.a2a.max_depth, claimed?.max_depth ?? Number.POSITIVE_INFINITY, own);
}

async function refuseLoop({ store, newId }: TaskParts, claimed: Hops | undefined): Promise<void> {
  if (!claimed) return;
  if (claimed.houses.includes(await houseId(store, newId)))
    throw new Failure("task.cycle", "this task has come through this house before: it goes round in a circle");
  if (claimed.houses.length >= MAX_HOPS) throw new Failure("task.too_deep", `this task has passed ${claimed.houses.length} houses already`);
}

function claimedIn(request: SendMessageRequest, message: Message): Hops | undefined {
  const written: unknown = message.metadata?.[HOPS_EXTENSION] ?? request.metadata?.[HOPS_EXTENSION];
  if (written === undefined || written === null) return undefined;
  const read = hopsSchema.safeParse(written);
  if (!read.success) throw malformed(`${HOPS_EXTENSION}: ${read.error.issues[0]?.message}`);
  return read.data;
}

function named(field: string, value: string): string {
  const read = identifier.safeParse(value);
  if (!read.success) throw malformed(`${field}: ${read.error.issues[0]?.message}`);
  return read.data;
}

function textOf(parts: readonly Part[]): string {
  const words = parts.map(({ content }) => {
    if (content?.$case === "text") return content.value;
    if (content?.$case === "data") return JSON.stringify(content.value ?? null);
    throw new Failure("request.malformed", "parts: only text and data are taken here", { details: { a2a: "content" } });
  });
  const read = newTask.shape.goal.safeParse(words.join("\n"));
  if (!read.success) throw malformed(`parts: ${read.error.issues[0]?.message}`);
  return read.data;
}

function malformed(message: string): Failure {
  return new Failure("request.malformed", message);
}
