import { describe, expect, test } from "vitest";
import { configSchema } from "../../contract/config.ts";
import { Failure } from "../../kernel/failure.ts";
import type { ModelChunk, ModelRequest } from "../../kernel/model.ts";
import { seededRandom } from "../../kernel/random.ts";
import { settingsWithoutFile } from "../../settings/load-settings.ts";
import { Breaker } from "./breaker.ts";
import type { RawChunk } from "./providers/from-stream.ts";
import { type ProviderSpec, providerSpecs } from "./providers/provider-specs.ts";
import { SilentProvider, type Trouble, troubleOf, waitOf } from "./providers/provider-trouble.ts";
import { PATIENCE, PATIENCE_WITH_NEXT, type Patience, resilientStream, type Time } from "./resilient-model.ts";

/** Time that passes only when somebody waits, and then at once: whoever waits shortest goes first. */
class FakeTime implements Time {
  at = 1_000_000;
  readonly slept: number[] = [];
  readonly #sleepers: { readonly until: number; wake(): void }[] = [];

  now(): number {
    return this.at;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const sleeper = { until: this.at + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal.addEventListener("abort", () => {
        const index = this.#sleepers.indexOf(sleeper);
        if (index >= 0) this.#sleepers.splice(index, 1);
        reject(signal.reason);
      });
      setImmediate(() => this.#pass());
    });
  }

  /** Everything that can go on without time has gone on. */
  #pass(): void {
    const [next] = this.#sleepers.toSorted((a, b) => a.until - b.until);
    if (!next) return;
    this.#sleepers.splice(this.#sleepers.indexOf(next), 1);
    this.slept.push(Math.max(0, next.until - this.at));
    this.at = Math.max(this.at, next.until);
    next.wake();
  }
}

type Play = "ok" | "hang" | "cut" | "late hang" | number | "busy" | "refused";
const REQUEST: ModelRequest = { system: null, messages: [{ role: "user", text: "hello" }] };

/** One attempt after another as the play says; a number is a time-to-wait in ms. */
function house(plays: Play[], options: { patience?: Partial<Patience>; time?: FakeTime; breaker?: Breaker } = {}) {
  const time = options.time ?? new FakeTime();
  const breaker = options.breaker ?? new Breaker(time);
  const asked: number[] = [];
  const parts = {
    name: "test/model",
    time,
    random: seededRandom(7),
    breaker,
    patience: { ...PATIENCE, ...options.patience },
    async *attempt(_request: ModelRequest, signal: AbortSignal): AsyncGenerator<RawChunk, void, void> {
      asked.push(time.now());
      const play = plays.shift() ?? "ok";
      const silence = () => new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      if (play === "hang") await silence();
      if (play === "busy" || play === "refused" || typeof play === "number") throw play;
      yield { kind: "alive" };
      yield { kind: "text", text: `part ${asked.length}` };
      if (play === "cut") throw "cut";
      if (play === "late hang") await silence();
      yield { kind: "usage", usage: { inputTokens: 1, outputTokens: 1 } };
    },
    judge: (error: unknown): Trouble => {
      const message = error instanceof SilentProvider ? error.message : String(error);
      const failure = new Failure(error === "busy" ? "model.busy" : error === "refused" ? "model.refused" : "model.failed", message);
      return { failure, passing: error !== "refused", waitMs: typeof error === "number" ? error : null };
    },
  };
  const ask = async (signal = new AbortController().signal): Promise<ModelChunk[]> => {
    const chunks: ModelChunk[] = [];
    for await (const chunk of resilientStream(parts, REQUEST, signal)) chunks.push(chunk);
    return chunks;
  };
  return { ask, asked, time, breaker, parts };
}

const kinds = (chunks: readonly ModelChunk[]) => chunks.map(({ kind }) => kind);

describe("attempts", () => {
  test("what passes by itself is tried again, after a growing time that chance spreads", async () => {
    const { ask, asked } = house(["busy", "busy", "busy", "ok"]);
    expect(kinds(await ask())).toEqual(["text", "usage"]);
    const waits = asked.slice(1).map((at, index) => at - (asked[index] as number));
    expect(waits.map((wait, index) => wait >= 250 * 2 ** index && wait <= 500 * 2 ** index)).toEqual([true, true, true]);
  });

  test("four attempts and no more; what cannot succeed gets one", async () => {
    const busy = house(["busy", "busy", "busy", "busy", "ok"]);
    await expect(busy.ask()).rejects.toMatchObject({ code: "model.busy" });
    expect(busy.asked.length).toBe(4);
    const refused = house(["refused", "ok"]);
    await expect(refused.ask()).rejects.toMatchObject({ code: "model.refused" });
    expect(refused.asked.length).toBe(1);
  });

  test("a provider that names a time is asked again after it, and not waited for when that is too long", async () => {
    const { ask, asked } = house([20_000, "ok"]);
    await ask();
    expect((asked[1] as number) - (asked[0] as number)).toBeGreaterThanOrEqual(20_000);
    expect((asked[1] as number) - (asked[0] as number)).toBeLessThan(20_600);
    const long = house([61_000, "ok"]);
    await expect(long.ask()).rejects.toMatchObject({ code: "model.failed" });
    expect(long.asked.length).toBe(1);
    const often = house([25_000, 25_000, 25_000, "ok"]);
    await expect(often.ask()).rejects.toMatchObject({ code: "model.failed" });
    expect(often.asked.length).toBe(3);
  });

  test("a provider that says not to wait at all is waited for as if it had said nothing", async () => {
    const { ask, asked } = house([0, 0, 0, "ok"]);
    await ask();
    const waits = asked.slice(1).map((at, index) => at - (asked[index] as number));
    expect(waits.map((wait, index) => wait >= 250 * 2 ** index)).toEqual([true, true, true]);
  });

  test("what was said before a break is void, and only then", async () => {
    expect(kinds(await house(["cut", "cut", "ok"]).ask())).toEqual(["text", "restart", "text", "restart", "text", "usage"]);
    expect(kinds(await house(["busy", "ok"]).ask())).toEqual(["text", "usage"]);
  });

  test("silence is given up: before the first sign and after one", async () => {
    const { ask, asked } = house(["hang", "late hang", "ok"], { patience: { firstMs: 10_000, idleMs: 5_000 } });
    const chunks = await ask();
    expect(kinds(chunks)).toEqual(["text", "restart", "text", "usage"]);
    expect(chunks[1]).toEqual({ kind: "restart", because: "nothing more came for 5 s" });
    expect((asked[1] as number) - (asked[0] as number)).toBeGreaterThanOrEqual(10_000);
    expect((asked[2] as number) - (asked[1] as number)).toBeGreaterThanOrEqual(5_000);
  });

  test("no attempt begins when too much time has passed in all", async () => {
    const { ask, asked } = house(["hang", "hang", "ok"], { patience: { firstMs: 100_000, totalMs: 150_000 } });
    await expect(ask()).rejects.toMatchObject({ message: "no answer within 100 s" });
    expect(asked.length).toBe(2);
  });

  test("where another model stands ready, one that is silent or rests is left for it", async () => {
    const silent = house(["hang", "ok"], { patience: PATIENCE_WITH_NEXT });
    await expect(silent.ask()).rejects.toMatchObject({ message: "no answer within 120 s" });
    expect(silent.asked.length).toBe(1);
    const resting = house(["ok"], { patience: PATIENCE_WITH_NEXT });
    for (let count = 0; count < 5; count++) resting.breaker.failed();
    const began = resting.time.at;
    await expect(resting.ask()).rejects.toMatchObject({ code: "model.busy" });
    expect(resting.time.at).toBe(began);
  });

  test("a stop ends the waiting and what is under way", async () => {
    const stop = new AbortController();
    const { parts } = house(["hang"]);
    const next = resilientStream(parts, REQUEST, stop.signal).next();
    stop.abort(new Error("stopped"));
    await expect(next).rejects.toThrow("stopped");
  });
});

describe("the breaker", () => {
  test("after five failures nobody asks until the rest is over, then one alone", async () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    for (let count = 0; count < 4; count++) breaker.failed();
    expect(breaker.admit().admitted).toBe(true);
    breaker.failed();
    expect(breaker.admit()).toMatchObject({ admitted: false, waitMs: 5_000 });
    time.at += 5_000;
    expect(breaker.admit().admitted).toBe(true);
    expect(breaker.admit().admitted).toBe(false);
    // The probe fails: twice the rest.
    breaker.failed(true);
    expect(breaker.admit()).toMatchObject({ admitted: false, waitMs: 10_000 });
    time.at += 10_000;
    expect(breaker.admit().admitted).toBe(true);
    breaker.succeeded();
    expect([breaker.admit().admitted, breaker.admit().admitted]).toEqual([true, true]);
  });

  test("a probe that was given up leaves the next one its turn", () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    for (let count = 0; count < 5; count++) breaker.failed();
    time.at += 5_000;
    expect(breaker.admit()).toMatchObject({ admitted: true, isProbe: true });
    breaker.undecided(true);
    expect(breaker.admit().admitted).toBe(true);
  });

  test("those that were under way when it opened neither end a probe nor stand for it", () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    for (let count = 0; count < 5; count++) breaker.failed();
    time.at += 5_000;
    expect(breaker.admit().isProbe).toBe(true);
    breaker.undecided(false);
    breaker.failed(false);
    breaker.answers(false);
    expect(breaker.admit()).toMatchObject({ admitted: false, waitMs: 1_000 });
    breaker.failed(true);
    expect(breaker.admit()).toMatchObject({ admitted: false, waitMs: 10_000 });
  });

  test("answers that all break off in the middle are failures in a row", async () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    const one = house(["cut", "cut", "cut", "cut"], { time, breaker });
    await expect(one.ask()).rejects.toMatchObject({ code: "model.failed" });
    const two = house(["cut"], { time, breaker, patience: { attempts: 1 } });
    await expect(two.ask()).rejects.toMatchObject({ code: "model.failed" });
    expect(breaker.admit().admitted).toBe(false);
  });

  test("a probe that is being answered lets the others in, before its answer is whole", async () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    for (let count = 0; count < 5; count++) breaker.failed();
    time.at += 5_000;
    const stream = resilientStream(house(["ok"], { time, breaker }).parts, REQUEST, new AbortController().signal);
    expect(await stream.next()).toMatchObject({ value: { kind: "text" } });
    expect([breaker.admit().admitted, breaker.admit().admitted]).toEqual([true, true]);
    await stream.return();
  });

  test("ten minutes of failures are a few attempts, however many ask; then it is as before", async () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    const asked: number[] = [];
    const end = time.at + 600_000;
    let turns = 0;
    while (time.at < end) {
      const one = house(["busy", "busy", "busy", "busy"], { time, breaker });
      await expect(one.ask()).rejects.toMatchObject({ code: "model.busy" });
      asked.push(...one.asked);
      turns++;
      time.at += 100;
    }
    expect(turns).toBeGreaterThan(5);
    expect(asked.length).toBeLessThan(40);
    const well = house(["ok"], { time, breaker });
    expect(kinds(await well.ask())).toEqual(["text", "usage"]);
  });

  test("a request that the provider refuses is no failure of the provider", async () => {
    const time = new FakeTime();
    const breaker = new Breaker(time);
    for (let count = 0; count < 10; count++)
      await house(["refused"], { time, breaker })
        .ask()
        .catch(() => {});
    expect(breaker.admit().admitted).toBe(true);
  });
});

test.each<[Record<string, string>, number | null]>([
  [{ "retry-after": "7" }, 7_000],
  [{ "retry-after-ms": "250", "retry-after": "7" }, 250],
  [{ "retry-after": new Date(1_000_000 + 3_000).toUTCString() }, 3_000],
  [{ "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2.5s" }, 62_500],
  [{ "x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1s" }, null],
  [{ "anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": new Date(1_005_000).toISOString() }, 5_000],
  [{ "retry-after": "soon" }, null],
  [{ "retry-after": "-5" }, null],
  [{ "retry-after": new Date(1_000_000 - 60_000).toUTCString() }, 0],
  [{ "retry-after": "3600" }, 3_600_000],
  [{}, null],
])("%j asks to wait %s ms", (headers, wait) => {
  expect(waitOf(headers, 1_000_000)).toBe(wait);
});

describe("429", () => {
  const spec = providerSpecs(settingsWithoutFile(configSchema.parse({}), "/home")).get("google") as ProviderSpec;
  const judged = (message: string) => {
    const { failure, passing, waitMs } = troubleOf({ message, statusCode: 429, responseBody: "" }, spec, "google/m", 0);
    return { code: failure.code, passing, waitMs };
  };

  test("is a matter of time where it says when to come back, even if it speaks of billing", () => {
    expect(judged("You exceeded your current quota, please check your plan and billing details.\nPlease retry in 36.5s.")).toEqual({
      code: "model.busy",
      passing: true,
      waitMs: 36_500,
    });
    expect(judged("Rate limit reached (RPD). Please try again in 7m12s. Add a payment method at https://x.test/billing.")).toMatchObject({
      passing: true,
      waitMs: 432_000,
    });
    expect(judged("Rate limit reached on requests per min. Visit https://x.test/account/billing to add a payment method.")).toMatchObject({
      code: "model.busy",
      waitMs: null,
    });
  });

  test("is none where nothing is left to pay with", () => {
    expect(judged("You exceeded your current quota, please check your plan and billing details.").code).toBe("model.refused");
    expect(judged("Billing hard limit has been reached").code).toBe("model.refused");
  });
});
