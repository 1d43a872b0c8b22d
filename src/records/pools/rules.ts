import {
  DEFAULT_MAX_BYTES,
  DEFAULT_QUOTA_BYTES,
  DEFAULT_QUOTA_ENTRIES,
  LARGEST_MAX_BYTES,
  type Policy,
  type PoolDefinition,
} from "../../contract/pools.ts";
import { type SchemaCheck, schemaCheck } from "./schema-check.ts";

/** What holds for one key, with every default filled in. */
export interface KeyRules {
  readonly readers: readonly string[];
  readonly writers: readonly string[];
  readonly policy: Policy;
  readonly check: SchemaCheck | null;
  readonly ttlMs: number | null;
  readonly maxBytes: number;
  readonly spills: boolean;
  readonly endorsers: readonly string[];
}

export interface Quota {
  readonly bytes: number;
  readonly entries: number;
  readonly agentBytes: number;
  readonly agentEntries: number;
}

/** In bytes, spilled or not. */
export function largestValue({ spills, maxBytes }: KeyRules): number {
  return spills ? LARGEST_MAX_BYTES : maxBytes;
}

/** A pool's definition, ready to be asked. Keys come from outside: they are looked up in a map, never as properties. */
export class PoolRules {
  readonly definition: PoolDefinition;
  readonly quota: Quota;
  readonly #named: ReadonlyMap<string, KeyRules>;
  readonly #otherKeys: KeyRules;

  constructor(definition: PoolDefinition) {
    this.definition = definition;
    const { quota } = definition;
    this.quota = {
      bytes: quota?.max_bytes ?? DEFAULT_QUOTA_BYTES,
      entries: quota?.max_entries ?? DEFAULT_QUOTA_ENTRIES,
      agentBytes: quota?.agent_max_bytes ?? Number.MAX_SAFE_INTEGER,
      agentEntries: quota?.agent_max_entries ?? Number.MAX_SAFE_INTEGER,
    };
    this.#otherKeys = keyRules(definition, {});
    this.#named = new Map(Object.entries(definition.keys ?? {}).map(([key, contract]) => [key, keyRules(definition, contract)]));
  }

  of(key: string): KeyRules {
    return this.#named.get(key) ?? this.#otherKeys;
  }

  /** Those of every key that has its own, and those of all others. */
  all(): readonly KeyRules[] {
    return [this.#otherKeys, ...this.#named.values()];
  }
}

type KeyContract = NonNullable<PoolDefinition["keys"]>[string];

function keyRules(pool: PoolDefinition, contract: KeyContract): KeyRules {
  return {
    readers: contract.readers ?? pool.readers ?? [],
    writers: contract.writers ?? pool.writers ?? [],
    policy: contract.policy ?? "reject",
    check: contract.schema === undefined ? null : schemaCheck(contract.schema),
    ttlMs: contract.ttl ?? null,
    maxBytes: Math.min(contract.max_bytes ?? DEFAULT_MAX_BYTES, LARGEST_MAX_BYTES),
    spills: contract.overflow === "spill",
    endorsers: contract.endorse ?? [],
  };
}
