export interface ApiChaosOptions {
  readonly database: "sqlite" | "postgres";
  /** Deaths of daemons. */
  readonly cycles: number;
  readonly seed: number;
  /** A server that is there already. */
  readonly postgresUrl?: string;
  /** How long requests whose answer was lost are repeated at the end of a round. */
  readonly drainMs: number;
  /** Daemons at a time; without it, one and two in turn on PostgreSQL. */
  readonly daemons?: 1 | 2;
  readonly progress: (line: string) => void;
}
export interface ApiChaosReport {
  readonly database: string;
  readonly seed: number;
  readonly deaths: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}
/** Daemons are killed and come back while client processes work on them over HTTP; one round after another, each on a fresh database. */
export declare function apiChaos(options: ApiChaosOptions): Promise<ApiChaosReport>;
