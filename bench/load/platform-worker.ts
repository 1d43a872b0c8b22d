import { setTimeout as sleep } from "node:timers/promises";
import { telegramStandIn } from "../../test/platforms/telegram.ts";
import { serve, startChild } from "../child.ts";
import { quantile } from "../spread.ts";
import type { LoadedDaemonResult, LoadedDaemonTask } from "./daemon-worker.ts";

export interface LoadedPlatformTask {
  readonly folder: string;
  readonly agents: number;
  readonly chats: number;
  readonly warmUpMs: number;
  readonly fullMs: number;
  readonly steadyMs: number;
  readonly overloadMs: number;
  readonly limitMs: number;
}

export interface LoadedPlatformResult {
  /** As many at once as there are chats, each waiting for its answer. */
  readonly full: Phase;
  /** At half of that rate, whatever comes back. */
  readonly steady: Phase & { readonly slope: number; readonly firstMiB: number; readonly lastMiB: number };
  /** At ten times the steady rate. */
  readonly overload: Phase & { readonly said: number; readonly peakMiB: number; readonly left: number };
  /** From the end of the overload until messages are answered as quickly as before it: what it has left is answered first. */
  readonly backMs: number | null;
  /** When nothing more was answered: there was no room for it. */
  readonly refused: number;
  readonly daemonCpuMs: number;
  readonly platformCpuMs: number;
  readonly messages: number;
  readonly complaints: readonly string[];
}

interface Phase {
  readonly perSecond: number;
  /** From the moment in which the platform has a message until it has the answer, ms. */
  readonly p50: number;
  readonly p99: number;
}

/** After so many messages a conversation begins anew: what was said before is told to the model, and read for that. */
const CONVERSATION = 20;
const TICK_MS = 10;
const OVERLOAD = 10;
/** Of the full rate: what is asked for all the time. */
const STEADY = 0.5;
const WINDOW_MS = 1_000;
const PATIENCE_MS = 180_000;
/** Whoever was not answered for so long, while nobody else was either, was refused. */
const SILENCE_MS = 5_000;

await serve<LoadedPlatformTask, LoadedPlatformResult>(async (task) => {
  const telegram = await telegramStandIn();
  const chats = Array.from({ length: task.chats }, (_, index) => String(1_001 + index));
  const daemon = startChild<LoadedDaemonResult>(
    "load/daemon-worker.ts",
    { folder: task.folder, account: telegram.account, agents: task.agents, chats } satisfies LoadedDaemonTask,
    {},
    task.limitMs,
  );
  await daemon.ready;

  const open = new Map<string, { readonly said: number; readonly done: () => void }>();
  let answers: { readonly at: number; readonly took: number }[] = [];
  let said = 0;
  const inChat = new Map<string, number>();
  // Nothing of what was shown is needed afterwards, and this process is to stay as small as it was.
  telegram.accepted.push = (message) => {
    const word = message.text.slice("re ".length);
    const waiting = open.get(word);
    if (!waiting) return 0;
    open.delete(word);
    const now = performance.now();
    answers.push({ at: now, took: now - waiting.said });
    waiting.done();
    return 0;
  };
  const say = (chat: string): Promise<void> =>
    new Promise((resolve) => {
      const number = (inChat.get(chat) ?? 0) + 1;
      inChat.set(chat, number);
      if (number % CONVERSATION === 0) void telegram.say("/new", { peer: chat });
      const word = `m${said++}`;
      open.set(word, { said: performance.now(), done: resolve });
      void telegram.say(word, { peer: chat });
    });
  const phase = (since: number): Phase => {
    const seconds = (performance.now() - since) / 1_000;
    const took = answers.map((answer) => answer.took).sort((a, b) => a - b);
    const result = { perSecond: took.length / seconds, p50: quantile(took, 0.5), p99: quantile(took, 0.99) };
    answers = [];
    return result;
  };
  const closedLoop = async (ms: number): Promise<Phase> => {
    const begun = performance.now();
    answers = [];
    await Promise.all(
      chats.map(async (chat) => {
        while (performance.now() - begun < ms) await Promise.race([say(chat), sleep(PATIENCE_MS, undefined, { ref: false })]);
      }),
    );
    return phase(begun);
  };
  /** So many a second, in chat after chat, whether there are answers or not. */
  const openLoop = async (perSecond: number, until: () => boolean): Promise<void> => {
    const begun = performance.now();
    for (let count = 0; !until(); await sleep(TICK_MS))
      for (; count < ((performance.now() - begun) / 1_000) * perSecond; count++) void say(chats[count % chats.length] as string);
  };
  const after = (ms: number): (() => boolean) => {
    const end = performance.now() + ms;
    return () => performance.now() >= end;
  };
  const drained = async (): Promise<void> => {
    for (const end = after(PATIENCE_MS); open.size > 0 && !end(); ) await sleep(TICK_MS);
  };

  const cpu = process.cpuUsage();
  await closedLoop(task.warmUpMs);
  const full = await closedLoop(task.fullMs);
  const rate = full.perSecond * STEADY;

  const steadyFrom = Date.now();
  let begun = performance.now();
  answers = [];
  await openLoop(rate, after(task.steadyMs));
  const steady = phase(begun);
  const steadyTo = Date.now();
  await drained();

  const saidBefore = said;
  const overloadFrom = Date.now();
  begun = performance.now();
  answers = [];
  await openLoop(rate * OVERLOAD, after(task.overloadMs));
  const overload = { ...phase(begun), said: said - saidBefore, left: open.size };
  const ended = performance.now();
  let backMs: number | null = null;
  const late = after(PATIENCE_MS);
  await openLoop(rate, () => {
    const now = performance.now();
    const recent = answers.filter(({ at }) => now - at < WINDOW_MS);
    // Half of what came in the last second was as quick as nearly everything was before.
    const isBack =
      recent.length >= rate / 2 &&
      quantile(
        recent.map(({ took }) => took).sort((a, b) => a - b),
        0.5,
      ) <= steady.p99;
    if (isBack) backMs = now - ended;
    return isBack || late();
  });
  const overloadTo = Date.now();
  const silent = (): boolean => performance.now() - Math.max(ended, answers.at(-1)?.at ?? 0) >= SILENCE_MS;
  for (const end = after(PATIENCE_MS); !end() && open.size > 0 && !silent(); ) await sleep(TICK_MS);
  const { user, system } = process.cpuUsage(cpu);
  daemon.go();
  const { memory, cpuMs } = await daemon.result;
  await telegram.close();
  const during = (from: number, to: number) => memory.filter(({ at }) => at >= from && at <= to);
  const calm = during(steadyFrom, steadyTo);
  return {
    full,
    steady: { ...steady, slope: slopeOf(calm), firstMiB: calm[0]?.mebibytes ?? 0, lastMiB: calm.at(-1)?.mebibytes ?? 0 },
    overload: { ...overload, peakMiB: Math.max(...during(overloadFrom, overloadTo).map(({ mebibytes }) => mebibytes)) },
    backMs,
    refused: open.size,
    daemonCpuMs: cpuMs,
    platformCpuMs: (user + system) / 1_000,
    messages: said,
    complaints: telegram.complaints,
  };
});

/** Mebibytes a minute, by least squares, without the first fifth: there the heap is still growing to its size. */
function slopeOf(samples: readonly { readonly at: number; readonly mebibytes: number }[]): number {
  const counted = samples.slice(Math.floor(samples.length / 5));
  if (counted.length < 2) return 0;
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const minutes = counted.map(({ at }) => at / 60_000);
  const [x, y] = [mean(minutes), mean(counted.map(({ mebibytes }) => mebibytes))];
  const above = counted.reduce((sum, { mebibytes }, index) => sum + ((minutes[index] as number) - x) * (mebibytes - y), 0);
  return above / minutes.reduce((sum, minute) => sum + (minute - x) ** 2, 0);
}
