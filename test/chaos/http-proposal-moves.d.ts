import type { HttpClient } from "./http-client.ts";
/** Proposes a write and votes on what others propose. */
export declare class ProposalMoves {
  #private;
  constructor(client: HttpClient);
  propose(): Promise<void>;
  vote(): Promise<void>;
  look(): Promise<void>;
}
