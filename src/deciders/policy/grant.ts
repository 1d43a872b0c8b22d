import { grantSchema, type Layer, MAX_LAYERS } from "./layer.ts";

export interface Grant {
  /** Who acts. */
  readonly agent: string;
  readonly layers: readonly Layer[];
}

/** No rights that last: whatever is made of it has none either. */
export function noRights(agent: string): Grant {
  return { agent, layers: [NOTHING] };
}

const NOTHING: Layer = {
  source: "no rights",
  agent: null,
  rules: { profile: "minimal", also_allow: [], allow: [], deny: ["*"], ask: [] },
  origin: null,
  waived_by: [],
};
/** Nobody's. */
export const NO_RIGHTS: Grant = noRights("");

/** Layers are only ever added: what follows from a grant never has more rights than it. */
export function narrow(grant: Grant, ...layers: readonly Layer[]): Grant {
  if (grant.layers.length + layers.length > MAX_LAYERS) return NO_RIGHTS;
  return { agent: grant.agent, layers: [...grant.layers, ...layers] };
}

/** A grant as it was stored, text or value. What cannot be read, in whatever part, allows nothing. */
export function readGrant(stored: unknown): Grant {
  const result = grantSchema.safeParse(typeof stored === "string" ? parsed(stored) : stored);
  return result.success && holdsOwnRules(result.data) ? result.data : NO_RIGHTS;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Without its own agent's rules, or with conditions on them, something of a grant was lost. */
export function holdsOwnRules({ agent, layers }: Grant): boolean {
  return layers.some((layer) => layer.agent === agent && layer.waived_by.length === 0);
}
