/** What a `when` is asked about. */
export interface ConditionValues {
  readonly input: Readonly<Record<string, unknown>>;
  /** The newest values by key; null, or left out: there is none. */
  readonly outputs: Readonly<Record<string, unknown>>;
  /** By id. Steps that are left out have not begun. */
  readonly steps: Readonly<Record<string, StepFacts>>;
}

export interface StepFacts {
  readonly status: string;
  readonly attempts: number;
  readonly answer?: string | null;
}

/** What an expression names below a root; `all`: it cannot be told before it is evaluated. */
export type Named = readonly string[] | "all";

/** A `when`, ready to be asked. */
export interface Condition {
  readonly source: string;
  readonly outputs: Named;
  readonly steps: Named;
  /** Never throws: what cannot be evaluated is a problem of the step. */
  evaluate(values: ConditionValues): { readonly holds: boolean } | { readonly problem: string };
}

/** `offset`: where in the source. */
export interface ConditionProblem {
  readonly problem: string;
  readonly offset: number | null;
}

/** Turns the text of a `when` into a condition. Made by `loadConditions`; handed in, so that the planner stays pure and a start loads no CEL. */
export interface Conditions {
  compile(source: string): Condition | ConditionProblem;
}
