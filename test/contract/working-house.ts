import { contextTools } from "../../src/abilities/tools/context/context-tools.ts";
import { coordinationTools } from "../../src/abilities/tools/coordination/coordination-tools.ts";
import { type Settled, settleCall } from "../../src/abilities/tools/settle-call.ts";
import { TurnJournal } from "../../src/acts/turn-journal.ts";
import { TURN_WORK, type TurnPayload } from "../../src/acts/work-kinds.ts";
import { configSchema } from "../../src/contract/config.ts";
import type { PoolsConfig } from "../../src/contract/pools.ts";
import type { Address } from "../../src/deciders/routing/address.ts";
import { routeNamed } from "../../src/deciders/routing/route.ts";
import { sessionKey } from "../../src/deciders/routing/session-key.ts";
import type { Caller } from "../../src/kernel/caller.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { idSource } from "../../src/kernel/ids.ts";
import type { Label } from "../../src/kernel/label.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Redaction } from "../../src/kernel/redact.ts";
import { Approvals } from "../../src/records/access/approvals.ts";
import type { Agent } from "../../src/records/agents/agent.ts";
import { AgentRegistry } from "../../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../../src/records/agents/revision.ts";
import { Agreements } from "../../src/records/agreements/agreements.ts";
import { Claims } from "../../src/records/claims/claims.ts";
import { readCalls } from "../../src/records/journal/calls.ts";
import { Mailbox, type MailLimits } from "../../src/records/mailbox/mailbox.ts";
import { Pools } from "../../src/records/pools/pools.ts";
import { type RunInput, readRunInput } from "../../src/records/sessions/runs.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { admitMessage } from "../admit-message.ts";
import { begin, commitAnswer } from "../commit-answer.ts";

export const newId = idSource(systemClock, systemRandom);

/** A house without models: the test says what an agent calls in its turn, and every call goes the one way that calls go. */
export class WorkingHouse {
  readonly store: Store;
  readonly agents: AgentRegistry;
  readonly pools: Pools;
  readonly claims: Claims;
  readonly mailbox: Mailbox;
  readonly agreements: Agreements;
  readonly newId = newId;
  #messages = 0;

  constructor(store: Store, agents: Record<string, unknown> = { ada: {}, ben: {} }, limits: Partial<MailLimits> = {}) {
    this.store = store;
    this.agents = new AgentRegistry(revisionWithoutFile(configSchema.parse({ agents })));
    this.pools = new Pools(store);
    this.claims = new Claims(store, "node");
    this.mailbox = new Mailbox(store, newId, limits);
    this.agreements = new Agreements(store);
  }

  reconcile(pools: PoolsConfig): Promise<void> {
    return this.pools.reconcile(pools);
  }

  agent(id: string): Agent {
    return this.agents.get(id) as Agent;
  }

  async admit(id: string, chat = `chat ${this.#messages}`): Promise<string> {
    const address: Address = { platform: "t", account: "default", guild: null, chat, topic: null, chatType: "dm", peer: chat, roles: [] };
    const decision = routeNamed(this.agents.current.settings.config.agents, id);
    const message = { externalId: String(this.#messages++), address, text: "go on", decision, sessionKey: sessionKey(id, address) };
    return (await admitMessage(this.store, newId, message)).runId;
  }

  /** The turn of this run, or of the next one there is. */
  async take(node = "node", leaseMs = 60_000): Promise<WorkingTurn> {
    const [item] = await this.store.queue.claim(node, 1, leaseMs, [TURN_WORK]);
    if (!item) throw new Error("there is no turn to take");
    const run = (await readRunInput(this.store.read, (item.payload as TurnPayload).runId)) as RunInput;
    return new WorkingTurn(this, item, run, await begin(this.store, item, run));
  }

  /** A new message for this agent, and the turn that it causes. */
  async turnOf(id: string, chat?: string): Promise<WorkingTurn> {
    await this.admit(id, chat);
    return this.take();
  }
}

export class WorkingTurn {
  readonly run: RunInput;
  readonly item: ClaimedWork;
  readonly labels = new Set<Label>();
  readonly #house: WorkingHouse;
  readonly #journal: TurnJournal;
  readonly #cause: number;
  readonly #ending = new AbortController();
  #step = 0;

  constructor(house: WorkingHouse, item: ClaimedWork, run: RunInput, cause: number) {
    this.#house = house;
    this.item = item;
    this.run = run;
    this.#cause = cause;
    const { store } = house;
    this.#journal = new TurnJournal({ store, approvals: new Approvals(store, newId), reached: noCrashPoints }, item, run, cause);
  }

  get caller(): Caller {
    const agent = this.#house.agent(this.run.agent);
    return { kind: "agent", name: agent.id, roles: agent.roles, run: this.run.id, step: null, call: null };
  }

  async settle(tool: string, args: unknown, step = this.#step++): Promise<Settled> {
    const house = this.#house;
    const agent = house.agent(this.run.agent);
    const tools = new Map([...contextTools(house), ...coordinationTools(house)].map((one) => [one.name, one]));
    const records = await readCalls(house.store.read, this.run.id);
    return settleCall(
      { clock: systemClock, redaction: new Redaction(), policy: () => house.agents.current.policy, spill: async () => null },
      {
        run: this.run,
        task: null,
        agent,
        revision: house.agents.current,
        grant: agent.grant,
        tools,
        journal: this.#journal,
        labels: this.labels,
        workspace: undefined,
        signal: this.#ending.signal,
        progress: () => {},
      },
      step,
      0,
      { id: `call ${step}`, tool, args: JSON.stringify(args) },
      records.find((record) => record.step === step),
    );
  }

  /** What the model reads of the call: words, or a value. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it.
  async call(tool: string, args: unknown = {}, step?: number): Promise<any> {
    const settled = await this.settle(tool, args, step);
    if (settled.kind !== "settled") throw new Error(`${tool} waits for a person`);
    try {
      return JSON.parse(settled.result.text);
    } catch {
      return settled.result.text;
    }
  }

  /** The same for a call that is refused or fails: its words. */
  async fails(tool: string, args: unknown = {}): Promise<string> {
    const settled = await this.settle(tool, args);
    if (settled.kind !== "settled" || !settled.result.failed) throw new Error(`${tool} did not fail: ${JSON.stringify(settled)}`);
    return settled.result.text;
  }

  stop(): void {
    this.#ending.abort(new Error("stopped"));
  }

  commit(): Promise<void> {
    return commitAnswer(this.#house.store, newId, this.item, this.run, { text: "done", usage: null }, this.#cause);
  }
}
