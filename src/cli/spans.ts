import { InvalidArgumentError } from "commander";
import { duration } from "../contract/text.ts";

/** `30s`, `10m` or milliseconds, as an option's value. */
export function milliseconds(text: string): number {
  const parsed = duration.safeParse(/^\d{1,12}$/.test(text) ? Number(text) : text);
  if (!parsed.success) throw new InvalidArgumentError("Expected a duration such as 500ms, 30s, 10m or 24h.");
  return parsed.data;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,16}$/.test(text)) throw new InvalidArgumentError("Expected a whole number.");
  return Number(text);
}

/** A moment as a person reads it: the time, and how far away it is. */
export function moment(at: number, now: number = Date.now()): string {
  const distance = span(Math.abs(at - now));
  return `${new Date(at).toTimeString().slice(0, 8)} (${at < now ? `${distance} ago` : `in ${distance}`})`;
}

export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`;
}

/** Rows under each other, each column as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
