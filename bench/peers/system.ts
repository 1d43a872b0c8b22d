/** One system in the comparison, in one process. Every method is the documented way of doing it there. */
export interface System {
  /** Adds one note of this writer to one shared thing, in one of the system's ways (see `Description.ways`); throws when it is refused. */
  add(way: string, writer: number, index: number): Promise<void>;
  /** How many different notes are there afterwards; null where they were recorded as effects. */
  count(way: string): Promise<number | null>;
  probeIsolation(): Promise<Probe[]>;
  readonly resumes: Readonly<Record<string, Resuming>>;
  /** Takes a piece of work and calls `pause` while it holds it; writes its result afterwards, whatever happened meanwhile. */
  work(run: string, by: string, pause: () => Promise<void>): Promise<string>;
  /** Takes the work over from a worker that is thought dead and finishes it. */
  takeOver(run: string, by: string): Promise<string>;
  /** Whose result stands, in each place where there is one. */
  results(run: string): Promise<Readonly<Record<string, string>>>;
  close(): Promise<void>;
}

export interface Resuming {
  /** Starts a run that waits for somebody's approval and would then do something once. */
  suspend(run: string): Promise<void>;
  /** Approves it. Answers what the system said. */
  resume(run: string, by: string, effect: Effect): Promise<string>;
  /** How often the step behind the approval ran, where that is not an effect of ours. */
  effects?(): Promise<readonly { readonly run: string; readonly times: number }[]>;
}

export interface Probe {
  readonly asked: string;
  readonly leaked: readonly string[];
}

export interface Description {
  readonly name: string;
  readonly version: () => string;
  readonly ways: Readonly<Record<string, string>>;
  readonly isolation: string;
  readonly resumes: Readonly<Record<string, string>>;
  readonly takeOver: string;
}

/** What a step would do between reading and writing: a short call of a model. */
export const THINK_MS = 10;

/** Records that the step after the approval ran: outside of every system, as a payment would be. */
export type Effect = (run: string, by: string) => Promise<void>;

/** Two daemons on one database, and a token for each identity. */
export interface House {
  readonly nodes: readonly string[];
  readonly tokens: Readonly<Record<string, string>>;
}

export interface Surroundings {
  /** Of the system's own database. */
  readonly url: string;
  readonly effect: Effect;
  /** Only where the system is a server. */
  readonly house: House | null;
  /** The processes of one scenario are numbered. */
  readonly seat: number;
}
