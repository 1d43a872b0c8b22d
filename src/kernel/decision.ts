/** One rule that was looked at, and why it won or lost. */
export interface TraceLine {
  /** Line of the config file, where the rule has one. */
  readonly line: number | null;
  readonly hit: boolean;
  readonly why: string;
}

/** What was decided carries its reasons: explaining is the same call as deciding. */
export interface Decision<Line extends TraceLine = TraceLine> {
  readonly because: string;
  /** Every rule, the losing ones included. */
  readonly trace: readonly Line[];
}
