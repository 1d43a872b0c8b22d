import type { Clock } from "../kernel/clock.ts";
import type { Log, LogFields } from "../kernel/log.ts";
import type { Redact } from "../kernel/redact.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LEVELS)[number];

/** One line per message. Values are JSON, so that no text from outside can begin a line of its own. */
export function stderrLog(clock: Clock, lowest: LogLevel, redact: Redact): Log {
  const write =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(lowest)) return;
      const details = Object.entries(fields).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
      process.stderr.write(redact(`${new Date(clock.now()).toISOString()} ${level.padEnd(5)} ${message}${details.join("")}\n`));
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
