import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { offlineProvider } from "../../src/abilities/models/offline-model.ts";
import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import { configSchema } from "../../src/contract/config.ts";
import { type Admission, inboundMessage, type NewMessage, type Run } from "../../src/contract/wire.ts";
import { type Accept, intake } from "../../src/drivers/intake/accept.ts";
import { type Caller, OPERATOR } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Approvals } from "../../src/records/access/approvals.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { type RunInput, readRun, readRunInput } from "../../src/records/sessions/runs.ts";
import { Sessions } from "../../src/records/sessions/sessions.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { TurnsHere } from "../../src/turns/turns-here.ts";
import { begin, commitAnswer } from "../commit-answer.ts";
import { taskParts } from "../task-parts.ts";

export const newId = idSource(systemClock, systemRandom);
export const CHANNEL: Caller = { kind: "channel", name: "telegram", roles: [], run: null, step: null, call: null };

/** A house without a daemon: messages come in, and the test takes the turns. */
export class TalkingHouse {
  readonly store: Store;
  readonly agents: AgentRegistry;
  readonly approvals: Approvals;
  readonly sessions: Sessions;
  readonly running = new TurnsHere();
  readonly accept: Accept;
  #messages = 0;

  constructor(store: Store, config: unknown = {}) {
    this.store = store;
    this.agents = new AgentRegistry(revisionWithoutFile(configSchema.parse(config)));
    this.approvals = new Approvals(store, newId);
    this.sessions = new Sessions(store, this.agents);
    const models = modelRegistry([offlineProvider]);
    const { accept } = intake(store, this.agents, newId, noCrashPoints, {
      models,
      approvals: this.approvals,
      running: this.running,
      tasks: taskParts(store, newId, this.agents),
      delivers: () => true,
    });
    this.accept = accept;
  }

  reconfigure(config: unknown): void {
    this.agents.apply(revisionWithoutFile(configSchema.parse(config)));
  }

  /** From an owner's direct message, unless the test says otherwise. */
  send(text: string, from: Partial<NewMessage> = {}, poster: Caller = CHANNEL): Promise<Admission> {
    const message = { id: `m${this.#messages++}`, platform: "telegram", chat: "7", peer: "7", chat_type: "dm", text, ...from };
    return this.accept(inboundMessage.parse(message), poster);
  }

  async say(text: string, from: Partial<NewMessage> = {}, poster: Caller = CHANNEL): Promise<Run> {
    return (await readRun(this.store.read, (await this.send(text, from, poster)).runId)) as Run;
  }

  /** What a command answers. */
  async ask(text: string, from: Partial<NewMessage> = {}, poster: Caller = CHANNEL): Promise<string> {
    return (await this.say(text, from, poster)).reply?.text ?? "";
  }

  async claimTurn(): Promise<{ item: ClaimedWork; run: RunInput }> {
    const [item] = await this.store.queue.claim("test", 1, 60_000, [TURN_WORK]);
    if (!item) throw new Error("there is no turn to take");
    return { item, run: (await readRunInput(this.store.read, (item.payload as TurnPayload).runId)) as RunInput };
  }

  async begin(): Promise<{ item: ClaimedWork; run: RunInput; cause: number }> {
    const claimed = await this.claimTurn();
    return { ...claimed, cause: await begin(this.store, claimed.item, claimed.run) };
  }

  commit({ item, run, cause }: { item: ClaimedWork; run: RunInput; cause: number }, text: string): Promise<void> {
    return commitAnswer(this.store, newId, item, run, { text, usage: null }, cause);
  }

  /** One message and its answer. */
  async exchange(text: string, answer: string, from: Partial<NewMessage> = {}): Promise<Admission> {
    const admission = await this.send(text, from);
    await this.commit(await this.begin(), answer);
    return admission;
  }

  async events(runId: string): Promise<string[]> {
    return (await this.store.ledger.read(0, 1_000, ["run", runId])).map((event) => event.type);
  }
}

export { OPERATOR };
