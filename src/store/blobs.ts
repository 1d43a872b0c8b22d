import { sha256 } from "../kernel/canonical-json.ts";
import type { ReachedPoint } from "../kernel/crash-points.ts";
import type { Scope } from "../kernel/scope.ts";
import type { Engine, Reads, Tx } from "./engine.ts";
import { scopeKey, wholeMs } from "./keys.ts";

/**
 * Large values by the hash of their content. An owner's reference and the bytes are stored in one transaction; bytes that nobody
 * refers to are swept after a while.
 */
export class Blobs {
  readonly #engine: Engine;
  readonly #reached: ReachedPoint;

  constructor(engine: Engine, reached: ReachedPoint) {
    this.#engine = engine;
    this.#reached = reached;
  }

  async put(tx: Tx, owner: Scope, bytes: Uint8Array): Promise<string> {
    const hash = sha256(bytes);
    // Touching a known blob locks its row, so that a sweep at the same moment sees it as used.
    await tx.run`insert into blobs (hash, size, bytes, touched_at) values (${hash}, ${bytes.byteLength}, ${bytes}, now_ms())
      on conflict (hash) do update set touched_at = now_ms()`;
    await tx.run`insert into blob_references (owner, hash) values (${scopeKey(owner)}, ${hash}) on conflict (owner, hash) do nothing`;
    this.#reached("blob.stored");
    return hash;
  }

  async get(hash: string, reads: Reads = this.#engine.reads): Promise<Uint8Array | undefined> {
    const row = await reads.get<{ bytes: Uint8Array }>`select bytes from blobs where hash = ${hash}`;
    return row && new Uint8Array(row.bytes);
  }

  /** The owner no longer needs this blob, or any, when no hash is named. */
  async release(tx: Tx, owner: Scope, hash?: string): Promise<void> {
    const name = scopeKey(owner);
    if (hash === undefined) await tx.run`delete from blob_references where owner = ${name}`;
    else await tx.run`delete from blob_references where owner = ${name} and hash = ${hash}`;
  }

  async sweep(unusedMs: number): Promise<number> {
    return this.#engine.single(
      "sweep blobs",
      (tx) =>
        tx.run`delete from blobs where touched_at < now_ms() - cast(${wholeMs(unusedMs)} as bigint)
        and not exists (select 1 from blob_references where blob_references.hash = blobs.hash)`,
    );
  }
}
