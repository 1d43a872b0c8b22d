/**
 * What a turn carries once it has seen something: `external`, words of somebody the house does not answer to; `secret`, what must not leave.
 * Labels are only ever added.
 */
export const LABELS = ["external", "secret"] as const;
export type Label = (typeof LABELS)[number];
