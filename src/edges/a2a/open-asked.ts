import type { Message, Part, SendMessageRequest } from "@a2a-js/sdk";
import { labelsOfAskerIn, rightsToAsk } from "../../acts/tasks/ask-for-task.ts";
import { delegatedInput } from "../../acts/tasks/delegated-words.ts";
import { openTaskIn, type PlacedTask } from "../../acts/tasks/open-task.ts";
import { type Above, aboveElsewhere } from "../../acts/tasks/task-above.ts";
import type { TaskParts } from "../../acts/tasks/task-parts.ts";
import { HOPS_EXTENSION, type Hops, hops as hopsSchema, MAX_HOPS } from "../../contract/a2a.ts";
import { newTask } from "../../contract/tasks.ts";
import { identifier } from "../../contract/text.ts";
import type { Grant } from "../../deciders/policy/grant.ts";
import { ANY_ARGUMENTS, verdictOf } from "../../deciders/policy/may-call.ts";
import type { Caller } from "../../kernel/caller.ts";
import { Failure } from "../../kernel/failure.ts";
import { WaitingRoom } from "../../records/sessions/waiting.ts";
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
  const { settings, policy } = agents.current;
  const { a2a, limits } = settings.config;
  const { granted = policy.grantOf(agent), above } = rightsToAsk(parts, caller, agent);
  const key = messageKey(agent, messageId);
  const opened = await store.transact(
    "open asked task",
    async (tx) => {
      const isKnown = (await readTaskByKey(tx, caller.name, key)) !== undefined;
      if (!isKnown && caller.kind !== "operator" && (await countOpenOf(store, tx, caller.name)) >= a2a.max_open)
        return {
          refused: new Failure("task.too_many", `${a2a.max_open} tasks of ${caller.name} are open, and no more may be (a2a.max_open)`),
        };
      if (!isKnown) await new WaitingRoom().enterIn(tx, agent, limits);
      const opened = await openTaskIn(parts, tx, {
        kind: "api",
        agent,
        from: caller.name,
        parent: null,
        goal,
        spec: { conversation, ...(claimed ? { hops: claimed.houses } : {}) },
        granted,
        labels: await labelsOfAskerIn(parts, tx, caller),
        ...(caller.kind === "operator" ? {} : { input: inputFor(parts, caller, goal, granted) }),
        above: placeOf(parts, caller, agent, claimed, above),
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

/** What is claimed may lower how deep it may go, and raise how deep it is; nothing else. */
function placeOf(
  { agents: { current } }: TaskParts,
  caller: Caller,
  agent: string,
  claimed: Hops | undefined,
  known: Above | undefined,
): Above {
  const deepest = [current.settings.config.a2a.max_depth, claimed?.max_depth, known?.maxDepth].filter((depth) => depth !== undefined);
  return aboveElsewhere(Math.max(0, (claimed?.depth ?? 1) - 1), Math.min(...deepest), caller.name === agent ? [] : [caller.name]);
}

/** It is told who asks, and whether it may pass it on. */
function inputFor({ agents: { current } }: TaskParts, caller: Caller, goal: string, granted: Grant): (placed: PlacedTask) => string {
  return ({ id, depth, maxDepth }) => {
    const verdict = verdictOf({ grant: granted, current: current.policy, tool: "delegate_task", args: ANY_ARGUMENTS });
    return delegatedInput(id, caller.name, goal, depth < maxDepth && verdict !== "deny");
  };
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
