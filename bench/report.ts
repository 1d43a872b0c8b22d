import type { Spread } from "./spread.ts";

export type Unit =
  | "/s"
  | "ms"
  | "MiB"
  | "MiB/min"
  | "per write"
  | "turns"
  | "index"
  | "ratio"
  | "tokens"
  | "statements"
  | "statements/s"
  | "lost"
  | "leaked"
  | "run twice"
  | "let through";
export type Goal = { readonly atLeast: number } | { readonly atMost: number };

export interface Figure {
  readonly name: string;
  readonly unit: Unit;
  readonly value: Spread;
  readonly against?: { readonly name: string; readonly value: Spread };
  /** Of the value to what it is compared with, round by round. */
  readonly ratio?: Spread;
  /** For the median of the ratio; without a ratio, for the median of the value. */
  readonly goal?: Goal;
  /** What was done and what happened, where a figure alone would not tell. */
  readonly words?: readonly string[];
}

export interface Section {
  readonly title: string;
  readonly notes: readonly string[];
  readonly figures: readonly Figure[];
}

export function isMet(figure: Figure): boolean | undefined {
  if (!figure.goal) return undefined;
  const { median } = figure.ratio ?? figure.value;
  return "atLeast" in figure.goal ? median >= figure.goal.atLeast : median <= figure.goal.atMost;
}

export function missed(sections: readonly Section[]): Figure[] {
  return sections.flatMap((section) => section.figures.filter((figure) => isMet(figure) === false));
}

export function asJson(sections: readonly Section[], machine: Readonly<Record<string, unknown>>): string {
  const told = sections.map((section) => ({
    ...section,
    figures: section.figures.map((figure) => ({ ...figure, met: isMet(figure) })),
  }));
  return JSON.stringify({ machine, met: missed(sections).length === 0, sections: told }, null, 2);
}

const HEAD = ["", "figure", "compared with", "", "ratio (min–max)", "goal", ""];

export function asTable(sections: readonly Section[]): string {
  return sections
    .map(({ title, notes, figures }) =>
      [title, ...notes.map((note) => `  ${note}`), "", ...withWords(align([HEAD, ...figures.map(cells)]), figures), ""].join("\n"),
    )
    .join("\n");
}

function withWords([head = "", ...lines]: readonly string[], figures: readonly Figure[]): string[] {
  return [head, ...lines.flatMap((line, index) => [line, ...(figures[index]?.words ?? []).map((word) => `      ${word}`)])];
}

function cells({ name, unit, value, against, ratio, ...figure }: Figure): string[] {
  const goal = figure.goal ? ("atLeast" in figure.goal ? `≥ ${plain(figure.goal.atLeast)}` : `≤ ${plain(figure.goal.atMost)}`) : "";
  const met = isMet({ name, unit, value, ...(ratio && { ratio }), ...figure });
  return [
    name,
    quantity(value.median, unit),
    against?.name ?? "",
    against ? quantity(against.value.median, unit) : "",
    ratio ? `${plain(ratio.median)}× (${plain(ratio.min)}–${plain(ratio.max)})` : "",
    goal === "" ? "" : `${goal}${ratio ? "×" : ""}`,
    met === undefined ? "" : met ? "met" : "NOT MET",
  ];
}

function quantity(value: number, unit: Unit): string {
  if (unit === "/s") return `${Math.round(value).toLocaleString("en")} /s`;
  return `${plain(value)} ${unit}`;
}

function plain(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function align(rows: readonly (readonly string[])[]): string[] {
  // Only the first row says something in every column.
  const used = rows[0]?.map((_, column) => rows.slice(1).some((row) => row[column])) ?? [];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const rightAligned = new Set([1, 3]);
  return rows.map((row) =>
    `  ${row
      .map((cell, column) => (rightAligned.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .filter((_, column) => used[column])
      .join("  ")}`.trimEnd(),
  );
}
