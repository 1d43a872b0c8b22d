import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { offlineProvider } from "../../src/abilities/models/offline-model.ts";
import { DELIVERY_WORK } from "../../src/acts/work-kinds.ts";
import { accountsOf, type ChannelAccount, channelsConfig } from "../../src/contract/channels.ts";
import { deliverReply, type Sender } from "../../src/drivers/dispatch/deliver-reply.ts";
import { intake } from "../../src/drivers/intake/accept.ts";
import { type Receive, receiver } from "../../src/drivers/intake/receive.ts";
import type { ChannelAbilities, ChatFile, ChatMessage } from "../../src/kernel/channel.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { noCrashPoints } from "../../src/kernel/crash-points.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import type { Agent } from "../../src/records/agents/agent.ts";
import type { Workspace } from "../../src/records/workspaces/workspace.ts";
import { Workspaces } from "../../src/records/workspaces/workspaces.ts";
import type { Store } from "../../src/store/store.ts";
import { PlainPlatform } from "../plain-channel.ts";
import { taskParts } from "../task-parts.ts";
import { quiet } from "../turn-parts.ts";
import { newId } from "./sessions-place.ts";
import { TurningHouse } from "./turning-house.ts";

/** A house whose messages come over a channel of the test; the test takes the turns, and delivers. */
export class ChannelHouse extends TurningHouse {
  readonly platform = new PlainPlatform();
  account: ChannelAccount;
  readonly #receive: Receive;

  constructor(store: Store, config: { readonly channels: Record<string, unknown> }) {
    super(store, config);
    this.account = accountsOf(channelsConfig.parse(config.channels))[0] as ChannelAccount;
    const delivers = (): boolean => true;
    const common = { store, newId, delivers, agents: this.agents, random: systemRandom, log: quiet, reached: noCrashPoints };
    const takesIn = intake(store, this.agents, newId, noCrashPoints, {
      models: modelRegistry([offlineProvider]),
      approvals: this.approvals,
      running: this.running,
      tasks: taskParts(store, newId, this.agents),
      delivers,
    });
    this.#receive = receiver({ ...common, intake: takesIn, redact: (value) => value });
    this.parts = {
      files: { senderOf: () => this.sender(), workspaces: () => this.workspaces(), fetchMs: 60_000 },
      delivers: ({ platform }) => platform === "plain",
    };
  }

  async sender(): Promise<Sender> {
    const channel = await this.platform
      .plugin()
      .open(this.account, { log: quiet, clock: systemClock, random: systemRandom, longestWaitMs: 1_000 });
    return { channel, account: this.account, pausedMs: () => 0, pause: () => {} };
  }

  workspaces(): Promise<Workspaces> {
    return Workspaces.of(this.folder, { clock: systemClock, newId });
  }

  async workspace(agent = "main"): Promise<Workspace> {
    return (await this.workspaces()).workspace(this.agents.get(agent) as Agent, null, { configFile: null });
  }

  async textOf(path: string): Promise<string> {
    return Buffer.from((await (await this.workspace()).read(path)).bytes).toString();
  }

  /** Something is heard in private. */
  async hear(id: string, text: string, more: Partial<ChatMessage> = {}, peer = "7"): Promise<void> {
    const place = { guild: null, chat: peer, topic: null, chatType: "dm" } as const;
    const message: ChatMessage = { id, place, sender: { id: peer, name: null }, text, isForUs: true, messageId: id, ...more };
    await this.#receive(this.account, [message], async () => {});
  }

  /** Everything that waits to be delivered now, in its order. */
  async deliver(abilities: Partial<ChannelAbilities> = {}): Promise<void> {
    const { channel, ...sender } = await this.sender();
    const told = { ...channel, abilities: { ...channel.abilities, ...abilities } };
    const handler = deliverReply({
      store: this.store,
      random: systemRandom,
      reached: noCrashPoints,
      senderOf: async () => ({ ...sender, channel: told }),
    });
    for (;;) {
      const [item] = await this.store.queue.claim("delivers", 1, 60_000, [DELIVERY_WORK]);
      if (!item) return;
      await handler(item, new AbortController().signal);
    }
  }

  /** As the platform tells of it; its bytes can be had there. */
  file(name: string, bytes: Uint8Array | string, told: Partial<ChatFile> = {}): ChatFile {
    this.platform.files.set(name, Buffer.from(bytes));
    return { ref: name, name, mediaType: "application/octet-stream", bytes: null, ...told };
  }
}
