import { type Random } from "../../src/kernel/random.ts";
import { type ClientPlan, type Told } from "./http-records.ts";
import { type Answer, type Answered, type Asking, Wire } from "./http-wire.ts";

type Untold<Each> = Each extends unknown ? Omit<Each, "by"> : never;
/** One client: an identity with its randomness, its requests without an answer, and the log of all it saw. */
export declare class HttpClient {
  #private;
  readonly plan: ClientPlan;
  readonly random: Random;
  readonly wire: Wire;
  generation: number;
  constructor(plan: ClientPlan);
  get name(): string;
  tell(record: Untold<Told>): void;
  odd(what: string, answer: Answered): void;
  /** A text that nobody else ever writes. */
  unique(): string;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  pause(ms: number): Promise<void>;
  ask(method: string, path: string, asking?: Asking): Promise<Answer>;
  /** A POST with an idempotency key: one whose answer was lost is repeated until there is one; `settle` hears it, or null at the end. */
  keyed(path: string, body: unknown, settle: (answer: Answered | null) => void): Promise<void>;
  /** One round through the requests that still have no answer. */
  repeatOpen(): Promise<void>;
  drain(): Promise<void>;
}
