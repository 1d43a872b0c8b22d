import type { CallContext, Tool, ToolOutcome } from "../src/abilities/tools/tool.ts";
import { configSchema } from "../src/contract/config.ts";
import type { Address } from "../src/deciders/routing/address.ts";
import type { Label } from "../src/kernel/label.ts";
import { AgentRegistry } from "../src/records/agents/registry.ts";
import { revisionWithoutFile } from "../src/records/agents/revision.ts";
import type { Store } from "../src/store/store.ts";

export interface CalledFrom {
  readonly agent?: string;
  readonly address?: Partial<Address>;
  readonly labels?: readonly Label[];
  readonly epoch?: number;
  readonly run?: string;
}

const DM: Address = { platform: "telegram", account: "default", guild: null, chat: "7", topic: null, chatType: "dm", peer: "7", roles: [] };

/** Calls tools as a turn would, by the config of the moment, without a model and without policy. */
export class ToolCaller {
  readonly agents: AgentRegistry;
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #store: Store | null;
  #calls = 0;

  constructor(tools: readonly Tool[], config: unknown = {}, store: Store | null = null, agents?: AgentRegistry) {
    this.agents = agents ?? new AgentRegistry(revisionWithoutFile(configSchema.parse(config)));
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#store = store;
  }

  reconfigure(config: unknown): void {
    this.agents.apply(revisionWithoutFile(configSchema.parse(config)));
  }

  address(from: CalledFrom = {}): Address {
    return { ...DM, ...from.address };
  }

  context(from: CalledFrom = {}, signal: AbortSignal = new AbortController().signal): CallContext {
    const revision = this.agents.current;
    const agent = revision.agents.get(from.agent ?? "main");
    if (!agent) throw new Error(`there is no agent ${from.agent}`);
    const address = this.address(from);
    const run = from.run ?? `run${this.#calls++}`;
    return {
      task: null,
      run: {
        id: run,
        agent: agent.id,
        sessionKey: revision.sessionKeys.keyFor(agent.id, address),
        address,
        input: "",
        epoch: from.epoch ?? 1,
        model: null,
      } as CallContext["run"],
      agent,
      revision,
      grant: agent.grant,
      caller: { kind: "agent", name: agent.id, roles: [], run, step: null, call: null },
      key: `${run}.1.0`,
      work: 0,
      cause: 0,
      labels: new Set(from.labels),
      signal,
      progress: () => {},
    };
  }

  async call(name: string, args: unknown, from: CalledFrom = {}, signal?: AbortSignal): Promise<ToolOutcome> {
    const tool = this.#tools.get(name) as Tool;
    const context = this.context(from, signal);
    const checked = tool.parse(args);
    const { runIn } = tool;
    if (!runIn) return (tool.run as NonNullable<Tool["run"]>)(checked, context);
    return (this.#store as Store).transact(name, (tx) => runIn(tx, checked, context) as Promise<ToolOutcome>, "locked");
  }

  async text(name: string, args: unknown, from: CalledFrom = {}): Promise<string> {
    return String((await this.call(name, args, from)).output);
  }
}
