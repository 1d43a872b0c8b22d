import { modelRegistry } from "../../src/abilities/models/model-registry.ts";
import { offlineProvider } from "../../src/abilities/models/offline-model.ts";
import { DELIVERY_WORK, type KeptPlace } from "../../src/acts/work-kinds.ts";
import { configSchema } from "../../src/contract/config.ts";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { deliverReply } from "../../src/drivers/dispatch/deliver-reply.ts";
import { type Intake, intake } from "../../src/drivers/intake/accept.ts";
import { receiver } from "../../src/drivers/intake/receive.ts";
import { ChannelHub } from "../../src/edges/channels/channel-hub.ts";
import {
  type Channel,
  type ChannelAbilities,
  type ChatMessage,
  type Inbound,
  type Outbound,
  SendTrouble,
} from "../../src/kernel/channel.ts";
import type { CrashPoint } from "../../src/kernel/crash-points.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import type { Store } from "../../src/store/store.ts";
import type { ClaimedWork } from "../../src/store/work-queue.ts";
import { taskParts } from "../task-parts.ts";
import { quiet } from "../turn-parts.ts";
import { newId } from "./sessions-place.ts";
import { TurningHouse } from "./turning-house.ts";

/** Longer than any test lets time pass. */
const LONG_MS = 10 * 24 * 60 * 60_000;

/** What happens to the next message: `lose answer`: it is shown, and nobody hears of it. */
export type Fate = "take" | "lose answer" | SendTrouble;

/** One account of a platform that keeps what it is sent, and treats it as the test says. */
export class ChattingPlatform {
  abilities: ChannelAbilities = { dedupes: false, reacts: false, sendsFiles: true };
  /** What people see, oldest first. */
  readonly shown: { readonly chat: string; readonly text: string; readonly answers: string | null }[] = [];
  /** Every request to send, whatever came of it. */
  readonly asked: Outbound[] = [];
  fate: (message: Outbound) => Fate = () => "take";
  edit: Channel["edit"];
  onEnd: () => void = () => {};
  /** Takes no notice of being told to end. */
  isDeaf = false;
  listening = Promise.withResolvers<Inbound>();
  readonly #keys = new Map<string, string>();

  channel(): Channel {
    const platform = this;
    return {
      get abilities() {
        return platform.abilities;
      },
      get edit() {
        return platform.edit;
      },
      listen: async (inbound, signal) => {
        inbound.connected("bot");
        this.listening.resolve(inbound);
        await new Promise<void>((resolve) => {
          if (!this.isDeaf) signal.addEventListener("abort", () => resolve(), { once: true });
        });
        this.onEnd();
      },
      // One part for each line.
      partsOf: (text) => (text === "" ? [] : text.split("\n").map((line) => ({ text: line, plain: line }))),
      send: async (message) => this.#send(message),
    } as Channel;
  }

  #send(message: Outbound): { id: string } {
    this.asked.push(message);
    const fate = this.fate(message);
    if (fate instanceof SendTrouble) throw fate;
    const known = this.abilities.dedupes ? this.#keys.get(message.key) : undefined;
    const id = known ?? `p${this.shown.length}`;
    if (known === undefined)
      this.shown.push({ chat: message.place.chat, text: message.part?.text ?? message.file?.name ?? "", answers: message.answers });
    this.#keys.set(message.key, id);
    if (fate === "lose answer") throw new SendTrouble("unclear", "the connection was cut");
    return { id };
  }

  /** Of one chat. */
  texts(chat = "7"): string[] {
    return this.shown.filter((one) => one.chat === chat).map(({ text }) => text);
  }
}

/** A house with a chat platform: the test says what is heard there, takes the turns, and delivers. */
export class ChattingHouse extends TurningHouse {
  readonly platforms = new Map<string, ChattingPlatform>();
  readonly hub: ChannelHub;
  readonly node: string;
  /** Added to the time of this node. */
  offset = 0;
  /** Places for turns of this node that are free; a test begins them itself. */
  keepPlace: (agent: string) => KeptPlace | null = () => null;
  /** Instead of a channel. */
  openFails: Error | null = null;
  readonly #intake: Intake;
  #channels: object;

  constructor(store: Store, config: { readonly channels?: object } & object = {}, node = "node", leaseMs = LONG_MS) {
    const { channels = { test: { allow: ["7"] } }, ...rest } = config;
    super(store, rest);
    this.node = node;
    this.#channels = channels;
    const delivers = (): boolean => true;
    this.#intake = intake(store, this.agents, newId, (point) => this.reached(point), {
      models: modelRegistry([offlineProvider]),
      approvals: this.approvals,
      running: this.running,
      tasks: taskParts(store, newId, this.agents),
      delivers,
      keepPlace: (agent) => this.keepPlace(agent),
    });
    this.hub = new ChannelHub({
      store,
      node,
      log: quiet,
      random: systemRandom,
      clock: { now: () => Date.now() + this.offset },
      leaseMs,
      plugins: [
        {
          platform: "test",
          open: async ({ account }) => {
            if (this.openFails) throw this.openFails;
            return this.platform(account).channel();
          },
        },
      ],
      receive: receiver({
        store,
        newId,
        delivers,
        agents: this.agents,
        // "unstorable" is what no test of the database would let in.
        intake: {
          stored: this.#intake.stored,
          placeFor: this.#intake.placeFor,
          take: (message, from) => {
            const taken = this.#intake.take(message, from);
            if (message.text !== "unstorable") return taken;
            return {
              ...taken,
              inTx: async (tx) => {
                await taken.inTx(tx);
                throw new Error("not this one");
              },
            };
          },
        },
        random: systemRandom,
        log: quiet,
        reached: (point) => this.reached(point),
        redact: (value) => value,
      }),
    });
  }

  platform(account = "default"): ChattingPlatform {
    const platform = this.platforms.get(account) ?? new ChattingPlatform();
    this.platforms.set(account, platform);
    return platform;
  }

  adopt(channels: object = this.#channels): Promise<void> {
    this.#channels = channels;
    return this.hub.adopt(configSchema.parse({ channels }).channels);
  }

  inbound(account = "default"): Promise<Inbound> {
    return this.platform(account).listening.promise;
  }

  async hear(messages: readonly ChatMessage[], cursor?: unknown, account = "default"): Promise<void> {
    await (await this.inbound(account)).take(messages, cursor);
  }

  /** Messages, each answered by what it says. */
  async answered(texts: readonly string[], how: Partial<ChatMessage["place"]> = {}, account = "default"): Promise<void> {
    this.play = ({ messages }) => (messages.at(-1) as { text: string }).text;
    await this.hear(
      texts.map((text) => chatMessage(text, { id: newId(), place: how })),
      undefined,
      account,
    );
    for (const _ of texts) await this.take();
  }

  deliveries(most = 1, owner = "node"): Promise<ClaimedWork[]> {
    return this.store.queue.claim(owner, most, 60_000, [DELIVERY_WORK]);
  }

  async deliver(item: ClaimedWork, lost = new AbortController()): Promise<void> {
    const handler = deliverReply({
      store: this.store,
      random: systemRandom,
      reached: (point) => this.reached(point),
      senderOf: (address) => this.hub.senderOf(address),
    });
    await handler(item, lost.signal);
  }

  /** The next reply there is, to wherever it comes. */
  async deliverNext(): Promise<void> {
    await this.store.queue.reap();
    const [item] = await this.deliveries();
    if (!item) throw new Error("there is no reply to deliver");
    await this.deliver(item);
  }

  /** The node dies when it reaches this point for the n-th time: nothing of it comes after, and the next one finds the reply again. */
  async deliverAndDieAt(point: CrashPoint, time = 1): Promise<void> {
    const [item] = await this.deliveries(1, "dead");
    const lost = new AbortController();
    let times = 0;
    this.reached = (at) => {
      if (at !== point || ++times < time) return;
      lost.abort();
      throw new Error(`dead at ${at}`);
    };
    await this.deliver(item as ClaimedWork, lost).catch((error: Error) => {
      if (!error.message.startsWith("dead at")) throw error;
    });
    this.reached = () => {};
    if (!lost.signal.aborted) throw new Error(`${point} was not reached ${time} times`);
    await this.store.transact("its lease ends", (tx) => tx.run`update work set lease_until = 0 where owner = 'dead'`);
    await this.store.queue.reap();
  }

  /** Of the newest run that has one, or of all. */
  async replies(): Promise<{ state: string; problem: string | null; sent: string | null; body: string }[]> {
    return this.store.read.all`select state, problem, sent, body from outbox order by created_at, id`;
  }

  async told(type: LedgerEvent["type"]): Promise<LedgerEvent[]> {
    return (await this.store.ledger.read(0, 10_000)).filter((event) => event.type === type);
  }

  async runs(): Promise<{ status: string; input: string; code: string | null }[]> {
    const rows = await this.store.read.all<{ status: string; input: string; error: string | null }>`select status, input, error from runs
      order by id`;
    return rows.map(({ status, input, error }) => ({ status, input, code: error === null ? null : JSON.parse(error).code }));
  }

  async leave(): Promise<void> {
    await this.hub.stop();
    this.remove();
  }
}

/** In private, to us, from the one on the list, unless the test says otherwise. */
export function chatMessage(
  text: string,
  how: { readonly id?: string; readonly peer?: string; readonly isForUs?: boolean; readonly place?: Partial<ChatMessage["place"]> } = {},
): ChatMessage {
  const { id = text, peer = "7", isForUs = true, place } = how;
  return {
    id,
    place: { guild: null, chat: peer, topic: null, chatType: "dm", ...place },
    sender: { id: peer, name: null },
    text,
    isForUs,
    messageId: `at the platform ${id}`,
  };
}
