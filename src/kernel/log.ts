export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Port: what operators read. Never message text, never secrets. */
export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** What only somebody looks at who is searching for something. */
  debug?(message: string, fields?: LogFields): void;
}
