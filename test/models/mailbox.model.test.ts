import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mailReceive, newMail } from "../../src/contract/mail.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { isFailure } from "../../src/kernel/failure.ts";
import { idSource } from "../../src/kernel/ids.ts";
import { systemRandom } from "../../src/kernel/random.ts";
import { Mailbox } from "../../src/records/mailbox/mailbox.ts";
import type { Store } from "../../src/store/store.ts";
import { agent, guest } from "../callers.ts";
import { PLACES, type StorePlace } from "../stores.ts";
import { Elapse } from "./elapse.ts";
import { runsOf, SEED } from "./seed.ts";

interface Letter {
  readonly id: string;
  /** Sender, conversation and priority: what is kept in order. */
  readonly line: string;
  readonly urgent: boolean;
  state: "pending" | "leased" | "acked" | "dead" | "expired";
  attempts: number;
  fence: number;
  holder: string;
  leaseUntil: number;
  visibleAt: number;
  readonly expiresAt: number;
}

interface Model {
  now: number;
  /** In the order of sending. */
  readonly mail: Letter[];
  readonly receipts: { readonly letter: Letter; readonly fence: number; readonly holder: string }[];
}

interface Real {
  store: Store;
  place: StorePlace;
  mailbox: Mailbox;
}

const BOX = "role:crew";
const VISIBLE = 10_000;
const EXPIRES = 45_000;
const ATTEMPTS = 5;

/** What time alone has done. */
function settle(model: Model): void {
  for (const letter of model.mail) {
    if (letter.state === "leased" && letter.leaseUntil <= model.now) letter.state = letter.attempts >= ATTEMPTS ? "dead" : "pending";
    if (letter.state === "pending" && letter.expiresAt <= model.now) letter.state = "expired";
  }
}

class Send implements fc.AsyncCommand<Model, Real> {
  readonly sender: string;
  readonly conversation: string | null;
  readonly urgent: boolean;
  constructor(sender: string, conversation: string | null, urgent: boolean) {
    this.sender = sender;
    this.conversation = conversation;
    this.urgent = urgent;
  }
  check = () => true;
  async run(model: Model, { mailbox }: Real): Promise<void> {
    const { conversation, urgent } = this;
    const draft = { to: BOX, type: "note", content: model.mail.length, conversation, expires_ms: EXPIRES };
    const id = await mailbox.send(guest(this.sender), newMail.parse({ ...draft, priority: urgent ? "urgent" : "normal" }));
    model.mail.push({
      id,
      line: JSON.stringify([this.sender, conversation, urgent]),
      urgent,
      state: "pending",
      attempts: 0,
      fence: 0,
      holder: "",
      leaseUntil: 0,
      visibleAt: model.now,
      expiresAt: model.now + EXPIRES,
    });
  }
  toString = () => `send by ${this.sender} in ${this.conversation}${this.urgent ? ", urgent" : ""}`;
}

class Receive implements fc.AsyncCommand<Model, Real> {
  readonly holder: string;
  readonly max: number;
  constructor(holder: string, max: number) {
    this.holder = holder;
    this.max = max;
  }
  check = () => true;
  async run(model: Model, { mailbox }: Real): Promise<void> {
    settle(model);
    const held = new Set<string>();
    const free = model.mail.filter((letter) => {
      if (letter.state === "leased" || (letter.state === "pending" && letter.visibleAt > model.now)) held.add(letter.line);
      return letter.state === "pending" && !held.has(letter.line);
    });
    const expected = [...free.filter(({ urgent }) => urgent), ...free.filter(({ urgent }) => !urgent)].slice(0, this.max);
    const got = await mailbox.receive(agent(this.holder, "crew"), mailReceive.parse({ max: this.max, visibility_ms: VISIBLE }));
    expect(got.map(({ id, attempt }) => [id, attempt])).toEqual(expected.map(({ id, attempts }) => [id, attempts + 1]));
    for (const [index, letter] of expected.entries()) {
      const fence = got[index]?.fence as number;
      expect(fence).toBeGreaterThan(letter.fence);
      Object.assign(letter, {
        state: "leased",
        attempts: letter.attempts + 1,
        fence,
        holder: this.holder,
        leaseUntil: model.now + VISIBLE,
      });
      model.receipts.push({ letter, fence, holder: this.holder });
    }
  }
  toString = () => `receive ${this.max} by ${this.holder}`;
}

/** Ack or nack of any receipt there ever was: only the last one, in its time and by its receiver, counts. */
class Answer implements fc.AsyncCommand<Model, Real> {
  readonly verb: "ack" | "nack" | "nack later";
  readonly holder: string;
  readonly pick: number;
  constructor(verb: "ack" | "nack" | "nack later", holder: string, pick: number) {
    this.verb = verb;
    this.holder = holder;
    this.pick = pick;
  }
  check = (model: Readonly<Model>) => model.receipts.length > 0;
  async run(model: Model, { mailbox }: Real): Promise<void> {
    settle(model);
    const { letter, fence } = model.receipts.at(-1 - (this.pick % model.receipts.length)) as Model["receipts"][number];
    const valid = letter.state === "leased" && letter.fence === fence && letter.holder === this.holder;
    const caller = agent(this.holder, "crew");
    const delay = this.verb === "nack later" ? 8_000 : 0;
    const work = this.verb === "ack" ? mailbox.ack(caller, letter.id, fence) : mailbox.nack(caller, letter.id, fence, delay);
    const done = await work.then(
      () => true,
      (error: unknown) => {
        if (!isFailure(error, "mail.stale")) throw error;
        return false;
      },
    );
    expect(done).toBe(valid);
    if (!valid) return;
    if (this.verb === "ack") letter.state = "acked";
    else Object.assign(letter, { state: letter.attempts >= ATTEMPTS ? "dead" : "pending", visibleAt: model.now + delay });
  }
  toString = () => `${this.verb} #${this.pick} by ${this.holder}`;
}

class Balance implements fc.AsyncCommand<Model, Real> {
  check = () => true;
  async run(model: Model, { mailbox }: Real): Promise<void> {
    settle(model);
    // The second round settles what came back to its expiry.
    await mailbox.sweep();
    await mailbox.sweep();
    const expected = { sent: model.mail.length, pending: 0, leased: 0, acked: 0, dead: 0, expired: 0 };
    for (const { state } of model.mail) expected[state]++;
    expect(await mailbox.counts(BOX)).toEqual(expected);
  }
  toString = () => "balance";
}

const holders = fc.constantFrom("x", "y");
const commands = fc.commands(
  [
    fc
      .tuple(fc.constantFrom("a", "b"), fc.constantFrom(null, "c"), fc.constantFrom(false, false, true))
      .map(([sender, conversation, urgent]) => new Send(sender, conversation, urgent)),
    fc.tuple(holders, fc.constantFrom(1, 2, 5)).map(([holder, max]) => new Receive(holder, max)),
    fc
      .tuple(fc.constantFrom("ack", "nack", "nack later"), holders, fc.nat(5))
      .map(([verb, holder, pick]) => new Answer(verb as Answer["verb"], holder, pick)),
    fc.constant(new Balance()),
    // Real time passes too while the test runs; the steps keep clear of the exact moment at which something ends.
    fc.constantFrom(3_300, 12_100).map((ms) => new Elapse(ms)),
  ],
  { maxCommands: 80 },
);

describe.each(PLACES)("mail on %s behaves like its model", (_name, makePlace) => {
  test("M1 M2 M3 M4 whatever is asked, in whatever order", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        const place = makePlace();
        try {
          const store = await place.open();
          const real = { store, place, mailbox: new Mailbox(store, idSource(systemClock, systemRandom)) };
          await fc.asyncModelRun(() => ({ model: { now: 0, mail: [], receipts: [] }, real }), sequence);
        } finally {
          await place.remove();
        }
      }),
      { seed: SEED, numRuns: runsOf(makePlace, 60, 15) },
    );
  });
});
