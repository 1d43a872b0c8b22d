import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEvent } from "../../src/contract/events.ts";
import { telegramStandIn } from "../platforms/telegram.ts";
import { postgresPlace, type StorePlace } from "../stores.ts";
import { checkChannels, linesOf, type Said, wordsIn } from "./channels-check.ts";
import { DaemonLife, seeded } from "./daemon-life.ts";
import { type Play, Witness } from "./turns-witness.ts";

/** Every line between the platform and the books at which it may die, in both directions, and any moment at all. */
export const CHANNEL_POINTS = [
  "message.received",
  "message.admitted",
  "reply.intended",
  "reply.delivered",
  "reply.recorded",
  "random",
] as const;

const CHATS = ["1", "2", "3", "4"];
/** One of the chats gets more at once than may wait there. */
const FLOODED = "5";
const FLOOD = 16;
const WAITING = 12;
const LEASE_MS = 2_000;
const PATIENCE_MS = 60_000;
/** Of what a life has to do, roughly: any moment of it. */
const RANDOM_MS = 600;

export interface ChannelsOptions {
  readonly database: "sqlite" | "postgres";
  /** How often it dies, all points together. */
  readonly kills: number;
  readonly seed: number;
  readonly postgresUrl?: string;
  readonly progress: (line: string) => void;
}

export interface ChannelsReport {
  readonly database: string;
  readonly seed: number;
  readonly hits: Record<string, number>;
  readonly messages: number;
  readonly counts: Record<string, number>;
  readonly problems: string[];
}

/** Some answers are longer than one message may be. */
const play: Play = ({ message }) => ({ text: wordsIn(message).flatMap(linesOf).join("\n"), calls: [] });

/** Kills a daemon around everything that comes from a chat platform and goes there; the platform, which lives on, counts what it sees. */
export async function channelsChaos(options: ChannelsOptions): Promise<ChannelsReport> {
  const home = mkdtempSync(join(tmpdir(), "guildhall-channels-"));
  const place: StorePlace | undefined = options.database === "postgres" ? postgresPlace(options.postgresUrl) : undefined;
  const [telegram, witness] = await Promise.all([telegramStandIn(), Witness.start(play)]);
  const config = {
    ...(place ? { store: place.location } : {}),
    agents: { main: { model: "outside/model" } },
    limits: { waiting_per_chat: WAITING },
    channels: { telegram: { ...telegram.account, allow: ["*"], stream: false, receipts: "none" } },
  };
  writeFileSync(join(home, "guildhall.yaml"), JSON.stringify(config));
  const hits: Record<string, number> = Object.fromEntries(CHANNEL_POINTS.map((point) => [point, 0]));
  const wanted = Math.ceil(options.kills / CHANNEL_POINTS.length);
  const random = seeded(options.seed);
  const said: Said[] = [];
  const say = async (chat: string): Promise<void> => {
    const word = `w${said.length}${said.length % 7 === 6 ? "long" : ""}`;
    said.push({ word, chat });
    await telegram.say(`say ${word}`, { peer: chat });
  };
  const chat = (): string => CHATS[Math.floor(random() * CHATS.length)] as string;
  let life: DaemonLife | undefined;
  try {
    const most = 3 * wanted * CHANNEL_POINTS.length;
    for (let cycle = 0; CHANNEL_POINTS.some((point) => (hits[point] as number) < wanted); cycle++) {
      if (cycle >= most) throw new Error(`after ${most} lives some points are not reached: ${JSON.stringify(hits)}`);
      const due = CHANNEL_POINTS.filter((point) => (hits[point] as number) < wanted);
      const point = due[cycle % due.length] as string;
      // A batch is received whole: there are fewer of those than there are messages.
      const hit = 1 + Math.floor(random() * (point === "message.received" ? 2 : 3));
      // While nobody is there, what is said waits at the platform.
      for (let index = 0; index < 2; index++) await say(chat());
      if (cycle % 5 === 0) for (let index = 0; index < FLOOD; index++) await say(FLOODED);
      // Now and then it dies again while it takes up what the life before has left.
      const armed = cycle % 4 === 3;
      const crash = point === "random" ? null : { point, hit, armed };
      life = await DaemonLife.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash });
      // Not so often that a message has no chance: whoever is killed on every attempt is given up.
      if (!armed) await diesInTime(life, isQuiet);
      life.arm();
      const victim = life;
      const blow = point === "random" ? setTimeout(() => void victim.kill(), random() * RANDOM_MS) : undefined;
      for (let index = 0; index < 4 && !life.dead; index++) {
        await say(chat());
        await Promise.race([life.ended, sleep(20)]);
      }
      const died = await diesInTime(life, isQuiet);
      clearTimeout(blow);
      if (died) hits[point] = (hits[point] as number) + 1;
      else await life.kill();
      if (cycle % 20 === 19) options.progress(`${cycle + 1} lives, ${CHANNEL_POINTS.map((each) => hits[each]).join(" ")}`);
    }
    life = await DaemonLife.begin({ home, witness: witness.url, leaseMs: LEASE_MS, crash: null });
    const { problems, counts } = await finish(life);
    problems.push(...telegram.complaints.map((words) => `the platform complains: ${words}`));
    return { database: options.database, seed: options.seed, hits, messages: said.length, counts, problems };
  } finally {
    await life?.kill();
    witness.close();
    await telegram.close();
    await place?.remove();
    rmSync(home, { recursive: true, force: true });
  }

  /** Where more comes than may wait, not everything is answered. */
  function isQuiet(): boolean {
    const words = new Set(telegram.accepted.flatMap(({ text }) => wordsIn(text)));
    return said.every((one) => one.chat === FLOODED || words.has(one.word));
  }

  /** Waits until it is dead, or has nothing more to do. */
  async function diesInTime(victim: DaemonLife, isIdle: () => boolean): Promise<boolean> {
    const until = Date.now() + PATIENCE_MS;
    for (let seen = -1, since = Date.now(); !victim.dead && Date.now() < until; ) {
      if (telegram.accepted.length !== seen) [seen, since] = [telegram.accepted.length, Date.now()];
      if (Date.now() - since > (isIdle() ? 200 : 3_000)) break;
      await Promise.race([victim.ended, sleep(20)]);
    }
    return victim.dead;
  }

  /** Until nothing is missing, or that will not change. */
  async function finish(last: DaemonLife): Promise<ReturnType<typeof checkChannels>> {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      const events = await last.events();
      // The platform numbers what is said in its order.
      const admitted = events.filter(({ type }) => type === "message.admitted");
      const numberOf = ({ data }: LedgerEvent): number => Number((data as { id: string }).id.split("/")[1]);
      const first = Math.min(...admitted.map(numberOf));
      const words = new Map(admitted.map((event) => [event.subject[1], (said[numberOf(event) - first] as Said).word]));
      const about = (kind: LedgerEvent["type"]): string[] =>
        events.filter(({ type }) => type === kind).map(({ subject }) => words.get(subject[1]) ?? "nothing that was said");
      const books = {
        refused: about("message.refused"),
        unclear: about("reply.unclear"),
        abandoned: about("reply.abandoned"),
        failed: about("turn.failed"),
      };
      const checked = checkChannels(said, telegram.accepted, books);
      if (checked.missing === 0 || Date.now() > until) return checked;
      await sleep(500);
    }
  }
}
