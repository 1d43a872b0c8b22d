import { OWN_HOUSE } from "../contract/wire.ts";
import type { Address } from "../deciders/routing/address.ts";
import type { Caller } from "../kernel/caller.ts";
import type { Label } from "../kernel/label.ts";
import type { Steered } from "../records/journal/steps.ts";
import { mergeRun, type RunInput, readRunInput } from "../records/sessions/runs.ts";
import type { Tx } from "../store/engine.ts";
import type { Store } from "../store/store.ts";
import { openUrgentMailIn } from "./open-mail.ts";
import type { TurnJournal } from "./turn-journal.ts";
import { mailboxOf } from "./turn-mail.ts";
import { sessionLane, type TurnPayload } from "./work-kinds.ts";

/** Words that one turn takes in at once; what is left comes between the next two answers, or gets a turn of its own. */
const MESSAGES_AT_ONCE = 20;
/** Turns that mail has started: others like them open their own mail. */

interface SteerParts {
  readonly store: Store;
  readonly journal: TurnJournal;
}

/** What has reached a turn while it ran. */
export interface Reached {
  readonly said: readonly Steered[];
  readonly labels: readonly Label[];
}

/**
 * Takes into a running turn what has reached its conversation since, and urgent mail: the work of those messages goes, their runs end with
 * this turn, and the turn's journal has their words, all or nothing. Null: there was nothing. A message that comes while the last
 * answer is made gets a turn of its own.
 */
export async function steerTurn({ store, journal }: SteerParts, run: RunInput, agent: Caller, step: number): Promise<Reached | null> {
  if (!(await isReached(store, run, agent))) return null;
  let reached: Reached = { said: [], labels: [] };
  const added = await journal.add("turn.steered", step, async (tx) => {
    const { said: messages, isExternal } = await takeMessages(store, tx, run);
    const mail = await openUrgentMailIn(mailboxOf(store), tx, agent);
    const urgent: Steered[] = mail.text === null ? [] : [{ from: mail.from.join(", "), text: mail.text, run: null, mail: mail.mail }];
    const labels: readonly Label[] = isExternal ? [...new Set<Label>([...mail.labels, "external"])] : mail.labels;
    reached = { said: [...messages, ...urgent], labels };
    if (reached.said.length === 0) return null;
    const runs = messages.map(({ run: id }) => id);
    const told = { step, runs, mail: mail.mail.map(({ id }) => id) };
    return { added: { kind: "steered", body: reached.said }, labels, told };
  });
  return added ? reached : null;
}

/** A look, without a lock: most of the time there is nothing. */
async function isReached(store: Store, run: RunInput, agent: Caller): Promise<boolean> {
  if (await mailboxOf(store).has(store.read, agent, true)) return true;
  return takesMessages(run) && (await store.queue.inLane(store.read, sessionLane(run.sessionKey))).length > 1;
}

/** Whoever speaks with an agent as with a model gets the answer to what he sent, and to nothing else. */
function takesMessages(run: RunInput): boolean {
  return run.request === undefined && run.address.platform !== OWN_HOUSE;
}

/** In their order, up to the first that needs a turn of its own. */
async function takeMessages(
  store: Store,
  tx: Tx,
  run: RunInput,
): Promise<{ readonly said: readonly Steered[]; readonly isExternal: boolean }> {
  if (!takesMessages(run)) return NOTHING_SAID;
  const [, ...waiting] = await store.queue.inLane(tx, sessionLane(run.sessionKey));
  const wanted: { readonly work: number; readonly message: RunInput; readonly causedBy: number }[] = [];
  for (const { id, payload } of waiting.slice(0, MESSAGES_AT_ONCE)) {
    const { runId, causedBy } = payload as TurnPayload;
    const message = await readRunInput(tx, runId);
    if (!message || !belongsTo(run, message)) break;
    wanted.push({ work: id, message, causedBy });
  }
  if (wanted.length === 0) return NOTHING_SAID;
  // Somebody may have stopped one of them meanwhile.
  const removed = await store.queue.cancelAll(
    tx,
    wanted.map(({ work }) => work),
  );
  const said: Steered[] = [];
  let isExternal = false;
  for (const { work, message, causedBy } of wanted) {
    if (!removed.has(work) || !(await mergeRun(tx, message.id, run.id))) continue;
    await store.ledger.append(tx, {
      type: "turn.merged",
      actor: run.agent,
      subject: ["run", message.id],
      causedBy,
      data: { into: run.id },
    });
    isExternal ||= message.origin?.isExternal ?? false;
    said.push({ from: `${message.address.platform}:${message.address.peer}`, text: message.input, run: message.id });
  }
  return { said, isExternal };
}

const NOTHING_SAID = { said: [], isExternal: false } as const;

/**
 * The same agent and epoch, and an answer to one reaches the other: in a conversation that has several chats it would not. What has files
 * gets a turn of its own, at whose beginning they are fetched.
 */
function belongsTo(run: RunInput, message: RunInput): boolean {
  return (
    message.agent === run.agent &&
    message.epoch === run.epoch &&
    message.request === undefined &&
    !message.origin?.files.length &&
    isSamePlace(run.address, message.address)
  );
}

function isSamePlace(a: Address, b: Address): boolean {
  return a.platform === b.platform && a.account === b.account && a.guild === b.guild && a.chat === b.chat && a.topic === b.topic;
}
