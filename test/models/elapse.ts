import type fc from "fast-check";
import type { StorePlace } from "../stores.ts";

/** Time passes, in the database and in the model. */
export class Elapse implements fc.AsyncCommand<{ now: number }, { place: StorePlace }> {
  readonly ms: number;
  constructor(ms: number) {
    this.ms = ms;
  }
  check = () => true;
  async run(model: { now: number }, { place }: { place: StorePlace }): Promise<void> {
    await place.elapse(this.ms);
    model.now += this.ms;
  }
  toString = () => `elapse ${this.ms}`;
}
