import type { Tool } from "../tool.ts";
import { type Resolve, systemResolve } from "./guarded-fetch.ts";
import { PROVIDER_BASES, type ProviderBases } from "./search-providers.ts";
import { webFetchTool } from "./web-fetch.ts";
import { webSearchTool } from "./web-search.ts";

export interface WebParts {
  readonly resolve?: Resolve;
  /** Where the providers are, and hosts that may be private: for tests alone. */
  readonly bases?: ProviderBases;
  readonly privateHosts?: readonly string[];
}

/** `web_fetch` and `web_search`. */
export function webTools({ resolve = systemResolve, bases = PROVIDER_BASES, privateHosts = [] }: WebParts = {}): Tool[] {
  return [webFetchTool(resolve), webSearchTool(resolve, bases, privateHosts)];
}
