import type { HttpClient } from "./http-client.ts";
/** Takes a claim, holds it for a moment, sometimes longer, and gives it back, or forgets it. */
export declare function claimSomething(client: HttpClient): Promise<void>;
