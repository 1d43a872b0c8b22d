/** Every line of a turn at which it may die, and the moment in which something was done outside and nobody inside knows yet. */
export declare const TURN_POINTS: readonly [
  "message.admitted",
  "turn.begun",
  "model.response.before",
  "model.response.recorded",
  "tool.intended",
  "tool.ran",
  "tool.settled",
  "turn.answered",
  "turn.committed",
  "outside: look",
  "outside: put",
  "outside: fire",
];
export interface TurnsOptions {
  readonly database: "sqlite" | "postgres";
  /** How often each point must be hit. */
  readonly hits: number;
  readonly seed: number;
  readonly postgresUrl?: string;
  readonly progress: (line: string) => void;
}
export interface TurnsReport {
  readonly database: string;
  readonly seed: number;
  readonly hits: Record<string, number>;
  readonly messages: number;
  readonly counts: Record<string, number>;
  readonly problems: string[];
}
/** Kills a daemon at every line of a turn, again and again, and counts from outside what was done and what was answered. */
export declare function turnsChaos(options: TurnsOptions): Promise<TurnsReport>;
