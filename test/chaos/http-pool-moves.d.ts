import type { HttpClient } from "./http-client.ts";
/** Reads, blind writes, compare-and-set and deletes of a few keys, by the versions this client has seen. */
export declare class PoolMoves {
  #private;
  constructor(client: HttpClient);
  register(): Promise<void>;
  increment(): Promise<void>;
  /** Two keys in one batch, with a key: both or neither, once. */
  pair(): Promise<void>;
}
