import { z } from "zod";

/** Text that both databases can hold and that can be percent-encoded: no NUL, no half of a surrogate pair. */
export const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((value) => !value.includes("\0") && value.isWellFormed(), "expected well-formed text without NUL");
export const identifier = text(256);

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30d`, `10m`, `500ms`, or a number of milliseconds; milliseconds when parsed. */
export const duration = z
  .union([z.int().positive(), z.string().regex(/^\d{1,9}(ms|s|m|h|d)$/, "expected a duration such as 30s, 10m or 30d")])
  .transform((value) => {
    if (typeof value === "number") return value;
    const unit = value.replace(/^\d+/, "") as keyof typeof UNITS;
    return Number.parseInt(value, 10) * UNITS[unit];
  })
  .refine((ms) => ms > 0 && ms <= 36_500 * UNITS.d, "expected a duration between 1 ms and 100 years");
