import { grantSchema, type Layer, MAX_LAYERS } from "./layer.ts";

export interface Grant {
  /** Who acts. */
  readonly agent: string;
  readonly layers: readonly Layer[];
}

/** A grant must hold its own agent's rules; this one has none, and allows nothing. */
export const NO_RIGHTS: Grant = { agent: "", layers: [] };

/** Layers are only ever added: what follows from a grant never has more rights than it. */
export function narrow(grant: Grant, ...layers: readonly Layer[]): Grant {
  if (grant.layers.length + layers.length > MAX_LAYERS) return NO_RIGHTS;
  return { agent: grant.agent, layers: [...grant.layers, ...layers] };
}

/**
 * What a named delegate may call: its own rights within its caller's. With `rights: own` the caller's layers travel along and are waived
 * only for as long as the config says so, so that taking the words back narrows what already runs, and adding them widens nothing.
 */
export function grantOfDelegate(caller: Grant, own: Grant, rights: "narrowed" | "own" | null): Grant {
  if (rights === null) return NO_RIGHTS;
  const edge = { from: caller.agent, to: own.agent };
  const inherited = rights === "own" ? caller.layers.map((layer) => ({ ...layer, waived_by: [...layer.waived_by, edge] })) : caller.layers;
  return narrow(own, ...inherited);
}

/** A grant as it was stored, text or value. What cannot be read, in whatever part, allows nothing. */
export function readGrant(stored: unknown): Grant {
  const result = grantSchema.safeParse(typeof stored === "string" ? parsed(stored) : stored);
  return result.success ? result.data : NO_RIGHTS;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
